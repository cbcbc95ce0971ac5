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

func TestNumbersInDocs(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       int
	}{
		{"the package", "// Package p (§ 1.1).\npackage p", 1},
		{"a function", "package p\n// F (§\n// 1.1).\nfunc F() {}", 1},
		{"a method", "package p\ntype T int\n// M (§ 1.1).\nfunc (t *T) M() {}", 1},
		{"a method of a generic type", "package p\ntype T[A, B any] int\n// M (§ 1.1).\nfunc (t *T[A, B]) M() {}", 1},
		{"a type, its fields, and what stands behind one", "package p\n// T (§ 1.1).\ntype T struct {\n// F (§ 1.1).\nF int\nG int // § 1.1\n}", 3},
		{"a method of an interface", "package p\ntype T interface {\n// M (§ 1.1).\nM()\n}", 1},
		{"constants", "package p\n// All (§ 1.1).\nconst (\n// A (§ 1.1).\nA = 1\nB = 2 // § 1.1\n)", 3},
		{"what is not exported", "package p\n// f (§ 1.1).\nfunc f() {}\n// t (§ 1.1).\ntype t struct {\n// F (§ 1.1).\nF int }\n// M (§ 1.1).\nfunc (t) M() {}", 0},
		{"a field that is not exported", "package p\ntype T struct {\n// f (§ 1.1).\nf int\n}", 0},
		{"plain comments", "// § 1.1\n\npackage p\n\n// § 1.1\n\nfunc F() {\n// § 1.1\nvar x int\n_ = x }", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found, err := numbersInDocs("p.go", strings.ReplaceAll(tt.text, "§", "SPEC"))
			if err != nil || len(found) != tt.want {
				t.Errorf("%d found, want %d: %v, %v", len(found), tt.want, found, err)
			}
		})
	}
}
