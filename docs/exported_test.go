package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var specNumber = regexp.MustCompile(`\bSPEC\s+\d`)

// A reader of the documentation of an exported name needs the rule and not its number,
// which is for plain comments and for the tests that prove it.
func TestExportedDocsSayTheRule(t *testing.T) {
	n := 0
	library := func(path string) bool {
		return filepath.Ext(path) == ".go" && !strings.HasSuffix(path, "_test.go") &&
			!strings.Contains("/"+filepath.ToSlash(path), "/internal/")
	}
	eachFile(t, library, func(path, text string) {
		found, err := numbersInDocs(path, text)
		if err != nil {
			t.Error(err)
		}
		for _, at := range found {
			t.Errorf("%s: an exported doc comment cites a rule by its number", at)
		}
		n++
	})
	if n < 50 {
		t.Errorf("only %d files of library packages found", n)
	}
}

// numbersInDocs returns where a file's exported documentation has the number of a rule.
// The documentation of a command is for its users, and counts as well.
func numbersInDocs(path, text string) (found []token.Position, _ error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	look := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			return false
		case *ast.FuncDecl:
			return n.Recv == nil || ast.IsExported(receiver(n.Recv.List[0].Type))
		case *ast.CommentGroup:
			if specNumber.MatchString(n.Text()) {
				found = append(found, fset.Position(n.Pos()))
			}
		}
		return true
	}
	ast.FileExports(file)
	ast.Inspect(file, look)
	return found, nil
}
