package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The layout in CONTRIBUTING.md has each public package and each program of the repository, and each of
// its folders exists. The table of packages in README.md has each public package.
func TestLayout(t *testing.T) {
	text, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, layout, _ := strings.Cut(string(text), "\n## Layout\n\n```\n")
	layout, _, _ = strings.Cut(layout, "```")
	listed := map[string]bool{}
	var parents []string // by depth
	for _, line := range strings.Split(strings.TrimSpace(layout), "\n") {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		names := regexp.MustCompile(`^ *((?:[a-z/]+/ *)+)`).FindStringSubmatch(line)
		if names == nil || indent%2 != 0 || indent/2 > len(parents) {
			t.Errorf("CONTRIBUTING.md: no folder in %q", line)
			continue
		}
		parents = parents[:indent/2]
		for _, name := range strings.Fields(names[1]) {
			dir := filepath.Join(append(parents[:len(parents):len(parents)], name)...)
			if listed[dir] = true; !isDir(dir) {
				t.Errorf("CONTRIBUTING.md: the layout has %s, which is no folder", dir)
			}
		}
		parents = append(parents, strings.Fields(names[1])[0])
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	public := 0
	for dir := range mappedPackages(t) {
		if under := dir + "/"; dir == "." || strings.Contains(under, "internal/") || strings.Contains(under, "interop/") {
			continue
		}
		public++
		if !listed[filepath.FromSlash(dir)] {
			t.Errorf("CONTRIBUTING.md: the layout lacks %s", dir)
		}
		if !strings.Contains(string(readme), "`"+dir+"`") && !strings.HasPrefix(dir, "cmd/") {
			t.Errorf("README.md: the table of packages lacks %s", dir)
		}
	}
	if public < 20 {
		t.Errorf("only %d packages found: are they all looked at?", public)
	}
}

// The table of commands in CONTRIBUTING.md has each target that "make help" lists and that is not
// there for releases, and no other.
func TestMakeTargets(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	targets, table := map[string]bool{}, map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z]+):.*##`).FindAllStringSubmatch(string(makefile), -1) {
		targets[m[1]] = true
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `make ([a-z]+)").FindAllStringSubmatch(string(text), -1) {
		if table[m[1]] = true; !targets[m[1]] {
			t.Errorf("CONTRIBUTING.md: make %s does not exist", m[1])
		}
	}
	for target := range targets {
		if !table[target] && target != "help" && target != "release" {
			t.Errorf("CONTRIBUTING.md: the table lacks make %s", target)
		}
	}
	if len(table) < 8 {
		t.Errorf("only %d commands found", len(table))
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
