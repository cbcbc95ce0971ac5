// Package snippet compiles the Go snippets of the README, as they stand, for the tests of
// the modules that they import.
package snippet

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	fence     = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	pkgName   = regexp.MustCompile(`\b([a-z]+)\.[A-Z]`)
	topReturn = regexp.MustCompile(`(?m)^return `)
)

// A Set is the snippets of a file that one module compiles.
type Set struct {
	File    string            // such as README.md, from the test's directory
	Module  string            // the directory of the module, from the test's; empty is the test's
	Imports map[string]string // path by the name that snippets use
	Stubs   string            // declarations that snippets take for granted
	Has     string            // a package; snippets that do not use it are left out
	Not     []string          // packages; snippets that use one are left out
	Least   int               // how many snippets there must be
}

// Compile fails the test unless each snippet compiles as a package of the module.
func Compile(t *testing.T, s Set) {
	t.Helper()
	text, err := os.ReadFile(s.File)
	if err != nil {
		t.Fatal(err)
	}
	module, err := filepath.Abs(s.Module)
	if err != nil {
		t.Fatal(err)
	}
	// The files lie in a temporary directory; an overlay shows them to the go command as
	// packages of this module.
	dir := t.TempDir()
	replace := map[string]string{}
	args := []string{"build", "-overlay", filepath.Join(dir, "overlay.json")}
	for i, m := range fence.FindAllStringSubmatch(string(text), -1) {
		names := packages(m[1])
		if s.Has != "" && !slices.Contains(names, s.Has) || slices.ContainsFunc(s.Not, func(n string) bool { return slices.Contains(names, n) }) {
			continue
		}
		name := fmt.Sprintf("snippet%d", i+1)
		file := filepath.Join(dir, name+".go")
		if err := os.WriteFile(file, []byte(s.program(m[1])), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(module, "internal", name, "snippet.go")] = file
		args = append(args, "./internal/"+name)
	}
	if len(replace) < s.Least {
		t.Fatalf("only %d snippets found", len(replace))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", args...)
	build.Dir = module
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("go build: %v\n%s", err, out)
	}
}

// packages gives the names before a dot and a capital letter.
func packages(body string) (names []string) {
	for _, m := range pkgName.FindAllStringSubmatch(body, -1) {
		if !slices.Contains(names, m[1]) {
			names = append(names, m[1])
		}
	}
	return names
}

// program makes a snippet a file that compiles on its own.
func (s Set) program(snippet string) string {
	body := snippet
	if !strings.HasPrefix(snippet, "func ") {
		returns := ""
		if topReturn.MatchString(snippet) {
			returns = " error"
		}
		body = fmt.Sprintf("func snippet(ctx context.Context)%s {\n%s}\n", returns, snippet)
	}
	var b strings.Builder
	b.WriteString("package snippet\n\n")
	for _, name := range packages(body + s.Stubs) {
		if path := s.Imports[name]; path != "" {
			fmt.Fprintf(&b, "import %s %q\n", name, path)
		}
	}
	return b.String() + body + s.Stubs
}
