package callsites

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
)

// comments returns the doc comments of the functions, fields and methods in the packages that patterns name, by the
// names that Places gives them. It leaves out internal packages. White space in the comments is folded.
func comments(patterns ...string) (map[string]string, error) {
	out, err := list(patterns, "-f", "{{$p := .}}{{range .GoFiles}}{{$p.Dir}}/{{.}}\n{{end}}")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, path := range strings.Fields(out) {
		if strings.Contains(filepath.ToSlash(path), "/internal/") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			commentsOf(d, func(name string, comment *ast.CommentGroup) {
				found[file.Name.Name+"."+name] = strings.Join(strings.Fields(comment.Text()), " ")
			})
		}
	}
	return found, nil
}

// commentsOf calls add with the name and the doc comment of each place in a declaration.
func commentsOf(d ast.Decl, add func(name string, comment *ast.CommentGroup)) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil {
			receiver, _, _ := strings.Cut(types.ExprString(d.Recv.List[0].Type), "[") // of type parameters
			name = strings.TrimPrefix(receiver, "*") + "." + name
		}
		for _, p := range d.Type.Params.List {
			for _, n := range p.Names {
				add(name+"("+n.Name+")", d.Doc)
			}
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			spec, ok := s.(*ast.TypeSpec)
			if !ok {
				continue
			}
			doc := spec.Doc
			if doc == nil {
				doc = d.Doc
			}
			add(spec.Name.Name, doc)
			switch u := spec.Type.(type) {
			case *ast.StructType:
				members(u.Fields, spec.Name.Name, add)
			case *ast.InterfaceType:
				members(u.Methods, spec.Name.Name, add)
			}
		}
	}
}

// members calls add for the fields of a struct or the methods of an interface. of is the name of the type.
func members(list *ast.FieldList, of string, add func(string, *ast.CommentGroup)) {
	for _, f := range list.List {
		doc := f.Doc
		if doc == nil {
			doc = f.Comment
		}
		for _, n := range f.Names {
			add(of+"."+n.Name, doc)
		}
	}
}
