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
	testFunc   = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)[A-Z]\w*)\(`)
	namedTest  = regexp.MustCompile("(?m)(?:`|// .*?\\b)((?:Test|Benchmark|Fuzz)[A-Z]\\w*)\\b")
)

// A test that a page, or the comment of another test, names is there.
func TestNamedTests(t *testing.T) {
	defined, named := map[string]bool{}, map[string]string{}
	eachFile(t, func(path string) bool { return strings.HasSuffix(path, "_test.go") || filepath.Ext(path) == ".md" }, func(path, text string) {
		for _, m := range testFunc.FindAllStringSubmatch(text, -1) {
			defined[m[1]] = true
		}
		for _, m := range namedTest.FindAllStringSubmatch(mdFence.ReplaceAllString(text, ""), -1) {
			named[m[1]] = path
		}
	})
	for name, path := range named {
		if !defined[name] && name != "TestExport" { // of a page about somebody else's tests
			t.Errorf("%s: there is no %s", path, name)
		}
	}
	if len(named) < 20 {
		t.Errorf("only %d are named", len(named))
	}
}

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
