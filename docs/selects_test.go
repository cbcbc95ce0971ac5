package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// Where two events can be ready, select chooses at random, so a comment at each select between them says which one wins,
// as CONTRIBUTING.md demands. A timer is no event here, because most are made just before the select. A select whose
// cases do nothing needs no comment.
func TestSelectsSayWhoWins(t *testing.T) {
	tools := []string{"benchmarks/", "examples/", "interop/", "internal/callsites/", "internal/simnet/", "/internal/simulate/", "test/", "/conformance/", "/pageserver/"}
	isCode := func(file string) bool {
		for _, dir := range tools {
			if strings.Contains(filepath.ToSlash(file), dir) {
				return false
			}
		}
		return filepath.Ext(file) == ".go" && !strings.HasSuffix(file, "_test.go") && !strings.Contains(file, "testdata")
	}
	found := 0
	eachFile(t, isCode, func(file, text string) {
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, text, parser.ParseComments)
		if err != nil {
			t.Error(err)
			return
		}
		line := func(p token.Pos) int { return set.Position(p).Line }
		ast.Inspect(parsed, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectStmt)
			if !ok || !races(s) {
				return true
			}
			found++
			for _, c := range parsed.Comments {
				if line(c.End()) >= line(s.Pos())-1 && line(c.Pos()) <= line(s.End())+1 {
					return true
				}
			}
			t.Errorf("%s: a comment must say which case wins if several are ready", set.Position(s.Pos()))
			return true
		})
	})
	if found < 40 {
		t.Errorf("only %d selects found", found)
	}
}

// races reports whether several events can be ready in s, and a case of one does something.
func races(s *ast.SelectStmt) bool {
	events, acts := 0, false
	for _, clause := range s.Body.List {
		c := clause.(*ast.CommClause)
		if c.Comm == nil { // with a default, no other case waits
			return false
		}
		timer := false
		ast.Inspect(c.Comm, func(n ast.Node) bool {
			x, ok := n.(*ast.SelectorExpr)
			timer = timer || ok && (x.Sel.Name == "C" || x.Sel.Name == "After")
			return true
		})
		if !timer {
			events++
			acts = acts || len(c.Body) > 0
		}
	}
	return events > 1 && acts
}
