package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The maps in docs/internals.md have each file of their folders, and no other.
func TestInternalsMap(t *testing.T) {
	data, err := os.ReadFile("docs/internals.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"timeout", "procgroup/internal/capture", "procgroup/internal/proctree", "procgroup/internal/procfs"} {
		_, section, found := strings.Cut(string(data), "\n### `"+dir+"`\n")
		if !found {
			t.Errorf("docs/internals.md has no section for %s", dir)
			continue
		}
		section, _, _ = strings.Cut(section, "\n#")
		var mapped, files []string
		for _, row := range regexp.MustCompile("(?m)^\\| `(.+\\.go)` \\|").FindAllStringSubmatch(section, -1) {
			mapped = append(mapped, row[1])
		}
		paths, err := filepath.Glob(filepath.Join(filepath.FromSlash(dir), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range paths {
			if name := filepath.Base(file); !strings.HasSuffix(name, "_test.go") {
				files = append(files, name)
			}
		}
		slices.Sort(mapped)
		slices.Sort(files)
		if diff := cmp.Diff(files, mapped); diff != "" {
			t.Errorf("the map of %s in docs/internals.md (-files +map):\n%s", dir, diff)
		}
	}
}
