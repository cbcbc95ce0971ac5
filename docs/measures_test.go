package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// The measures of the house, over the public packages of all modules, programs and examples aside: no more than this.
// They are lowered when the code gets below them.
const (
	maxNames   = 334 // exported names of packages
	maxMembers = 573 // and of fields and methods of exported types
	maxWith    = 10  // functions With…, which a struct of settings does not need
	maxLong    = 0   // doc comments of more than 25 lines
)

// A measure counts what a reader of the package pages has to know.
type measure struct{ names, members, with, long int }

// isPublic reports whether a file is of a public package of any module.
func isPublic(file string) bool {
	dir := filepath.ToSlash(filepath.Dir(file)) + "/"
	for _, top := range []string{"cmd/", "examples/", "docs/", "benchmarks/", "interop/", "scripts/"} {
		if strings.HasPrefix(dir, top) {
			return false
		}
	}
	return filepath.Ext(file) == ".go" && !strings.HasSuffix(file, "_test.go") && !strings.Contains("/"+dir, "/internal/") &&
		!strings.Contains(dir, "testdata/") && !strings.Contains(dir, "/interop")
}

// TestMeasures counts in the source, with the files of all systems, of which those that repeat a name count once.
func TestMeasures(t *testing.T) {
	var all measure
	seen := map[string]bool{}
	eachFile(t, isPublic, func(file, text string) {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		dir := path.Dir(filepath.ToSlash(file))
		all.add(t, parsed, func(name string) bool {
			again := seen[dir+"."+name]
			seen[dir+"."+name] = true
			return again
		})
	})
	for _, m := range []struct {
		name      string
		got, most int
	}{
		{"exported names", all.names, maxNames},
		{"fields and methods", all.members, maxMembers},
		{"functions With…", all.with, maxWith},
		{"doc comments of more than 25 lines", all.long, maxLong},
	} {
		if m.got > m.most {
			t.Errorf("%d %s, want at most %d", m.got, m.name, m.most)
		} else if t.Logf("%d %s of %d", m.got, m.name, m.most); m.got == 0 && m.most > 0 {
			t.Errorf("no %s found", m.name)
		}
	}
}

// add counts the declarations of a file. counted reports whether a name was counted before.
func (m *measure) add(t *testing.T, file *ast.File, counted func(name string) bool) {
	doc := func(name string, g *ast.CommentGroup) {
		if n := strings.Count(strings.TrimSpace(g.Text()), "\n") + 1; n > 25 {
			m.long++
			t.Logf("%s.%s has a doc comment of %d lines", file.Name, name, n)
		}
	}
	add := func(name string, g *ast.CommentGroup) {
		if !counted(name) {
			doc(name, g)
			if m.names++; strings.HasPrefix(name, "With") {
				m.with++
			}
		}
	}
	member := func(owner string, g *ast.CommentGroup, names ...*ast.Ident) {
		for _, n := range names {
			if n.IsExported() && !counted(owner+"."+n.Name) {
				m.members++
				doc(owner+"."+n.Name, g)
			}
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.IsExported() {
				add(d.Name.Name, d.Doc)
			} else if d.Recv != nil && ast.IsExported(receiver(d.Recv.List[0].Type)) {
				member(receiver(d.Recv.List[0].Type), d.Doc, d.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if !s.Name.IsExported() {
						continue
					}
					g := s.Doc
					if g == nil {
						g = d.Doc
					}
					add(s.Name.Name, g)
					var fields *ast.FieldList
					switch u := s.Type.(type) {
					case *ast.StructType:
						fields = u.Fields
					case *ast.InterfaceType:
						fields = u.Methods
					default:
						continue
					}
					for _, f := range fields.List {
						member(s.Name.Name, f.Doc, f.Names...)
					}
				case *ast.ValueSpec:
					for _, n := range s.Names {
						if n.IsExported() {
							add(n.Name, s.Doc)
						}
					}
				}
			}
		}
	}
}

// What stands in the program's text and is wrong, such as a nil function, panics with a *timeout.ConfigError, and not
// with a text. Package heartbeat stands below timeout.
func TestMisusePanicsWithConfigError(t *testing.T) {
	code := func(file string) bool {
		file = filepath.ToSlash(file)
		for _, other := range []string{"cmd/", "examples/", "docs/", "benchmarks/", "interop/", "internal/", "heartbeat/"} {
			if strings.HasPrefix(file, other) {
				return false
			}
		}
		return filepath.Ext(file) == ".go" && !strings.HasSuffix(file, "_test.go") && !strings.Contains(file, "/internal/")
	}
	places := 0
	eachFile(t, code, func(file, text string) {
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			if f, ok := call.Fun.(*ast.Ident); !ok || f.Name != "panic" {
				return true
			}
			switch arg := call.Args[0].(type) {
			case *ast.UnaryExpr:
				places++
			case *ast.BasicLit, *ast.BinaryExpr:
				t.Errorf("%s panics with a text, want a *timeout.ConfigError", set.Position(arg.Pos()))
			}
			return true
		})
	})
	if places == 0 {
		t.Error("no place found that panics")
	}
}
