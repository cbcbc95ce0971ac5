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
	modules := func(pattern string) []string {
		cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", pattern)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", cmd, err)
		}
		all := strings.Fields(string(out))
		slices.Sort(all)
		return slices.Compact(all)
	}
	if diff := cmp.Diff(modules("./..."), modules(".")); diff != "" {
		t.Errorf("see imports.go (-packages below +root):\n%s", diff)
	}
}
