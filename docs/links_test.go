package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	mdFence    = regexp.MustCompile("(?ms)^```.*?^```$")
	mdLink     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	mdHeading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInSlugs = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// A link of a Markdown file to another file, or to a heading of one, leads somewhere.
func TestLinks(t *testing.T) {
	n := 0
	isMarkdown := func(path string) bool { return filepath.Ext(path) == ".md" }
	eachFile(t, isMarkdown, func(path, text string) {
		for _, m := range mdLink.FindAllStringSubmatch(mdFence.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			n++
			target, heading, _ := strings.Cut(m[1], "#")
			file := path
			if target != "" {
				file = filepath.Join(filepath.Dir(path), target)
			}
			to, err := os.ReadFile(file)
			if err != nil {
				if _, err = os.ReadDir(file); err == nil && heading == "" {
					continue
				}
				t.Errorf("%s: %s: %v", path, m[1], err)
			} else if heading != "" && !hasHeading(mdFence.ReplaceAllString(string(to), ""), heading) {
				t.Errorf("%s: %s: there is no such heading", path, m[1])
			}
		}
	})
	if n < 10 {
		t.Errorf("only %d links found", n)
	}
}

// hasHeading says whether GitHub makes this anchor of one of the headings.
func hasHeading(text, anchor string) bool {
	for _, m := range mdHeading.FindAllStringSubmatch(text, -1) {
		slug := notInSlugs.ReplaceAllString(strings.ToLower(m[1]), "")
		if strings.ReplaceAll(slug, " ", "-") == anchor {
			return true
		}
	}
	return false
}
