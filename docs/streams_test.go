package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// bareStreams are the functions, by file, that use a standard stream without package stdio, and why they may.
var bareStreams = map[string]string{
	"cmd/deadline/start.go stdStreams":              "the command gets them",
	"cmd/deadline/supervise_other.go supervise":     "not Unix",
	"procgroup/host/process_windows.go peerOfStdin": "not Unix",
	"examples/mcpclient/main.go run":                "call gives stderr to the server, and writes to it with package stdio",
	"examples/quickstart/cases.go onTerminal":       "whether they are terminals",
}

// SPEC 6.32: whatever is read from a standard stream, or written to one, is so by package stdio, in all that people run
// beside programs that may make it non-blocking. What only makes or tests this project is not.
func TestStandardStreamsWait(t *testing.T) {
	tools := []string{"internal/", "benchmarks/", "interop/", "scripts/", "progress/internal/", "progress/mcpsdk/internal/", "progress/mcpgo/internal/", "timeout/inspect/internal/"}
	isCode := func(file string) bool {
		file = filepath.ToSlash(file)
		for _, dir := range tools {
			if strings.HasPrefix(file, dir) {
				return false
			}
		}
		return filepath.Ext(file) == ".go" && !strings.HasSuffix(file, "_test.go") && !strings.Contains(file, "testdata")
	}
	waiting, used := 0, make(map[string]bool)
	eachFile(t, isCode, func(file, text string) {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, 0)
		if err != nil {
			t.Error(err)
			return
		}
		for _, decl := range parsed.Decls {
			name := ""
			if f, ok := decl.(*ast.FuncDecl); ok {
				name = f.Name.Name
			}
			place := filepath.ToSlash(file) + " " + name
			fine := make(map[ast.Node]bool)
			ast.Inspect(decl, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && is(call.Fun, "stdio", "New") {
					for _, arg := range call.Args {
						fine[arg] = true
					}
				}
				if !is(n, "os", "Stdin", "Stdout", "Stderr") {
					return true
				}
				switch {
				case fine[n]:
					waiting++
				case bareStreams[place] == "":
					t.Errorf("%s uses %s without package stdio", place, n.(*ast.SelectorExpr).Sel.Name)
				default:
					used[place] = true
				}
				return true
			})
		}
	})
	if waiting < 15 {
		t.Errorf("only %d uses found", waiting)
	}
	for place := range bareStreams {
		if !used[place] {
			t.Errorf("%s does not use a standard stream", place)
		}
	}
}

// is reports whether n is one of the names of a package.
func is(n ast.Node, pkg string, names ...string) bool {
	s, ok := n.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	for _, name := range names {
		if ok && x.Name == pkg && s.Sel.Name == name {
			return true
		}
	}
	return false
}
