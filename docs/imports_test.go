package docs_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// "go get" of this module, as the README has it, is all that a program needs that imports any
// of its packages: so the package at the root depends on every module that any of them does.
func TestGoGetIsEnough(t *testing.T) {
	list := func(args ...string) []string {
		cmd := exec.Command("go", append([]string{"list"}, args...)...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", cmd, err)
		}
		all := strings.Fields(string(out))
		slices.Sort(all)
		return slices.Compact(all)
	}
	modules := func(packages ...string) []string {
		return list(append([]string{"-deps", "-f", "{{with .Module}}{{.Path}}{{end}}"}, packages...)...)
	}
	// A program cannot import internal packages, of which some are for tests.
	public := slices.DeleteFunc(list("./..."), func(path string) bool { return strings.Contains(path, "/internal/") })
	if diff := cmp.Diff(modules(public...), modules(".")); diff != "" {
		t.Errorf("see imports.go (-packages below +root):\n%s", diff)
	}
}
