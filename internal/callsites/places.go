package callsites

import (
	"encoding/json"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Places returns the names of the places at which the exported API of packages accepts code of a program, sorted:
// "timeout.Hooks.Started" is a field, "task.Store.Create" a method of an interface that a program may implement,
// "heartbeat.Relay(sink)" a parameter. It computes them from the types of the API, so that a new place cannot be
// forgotten. patterns name the packages as for the go command. Internal packages and programs have no places.
//
// Places does not list contexts, because nearly every function takes one. A [Table] has separate rows for contexts.
func Places(patterns ...string) ([]string, error) {
	out, err := list(patterns, "-export", "-deps", "-json=ImportPath,Export,Name,DepOnly")
	if err != nil {
		return nil, err
	}
	exports, ours := map[string]string{}, []string{}
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var p struct {
			ImportPath, Export, Name string
			DepOnly                  bool
		}
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly && p.Export != "" && p.Name != "main" && !slices.Contains(strings.Split(p.ImportPath, "/"), "internal") {
			ours = append(ours, p.ImportPath)
		}
	}
	types := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	})
	var found []string
	for _, path := range ours {
		pkg, err := types.Import(path)
		if err != nil {
			return nil, err
		}
		found = append(found, placesOf(pkg)...)
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// list returns the output of go list about the packages that patterns name.
func list(patterns []string, flags ...string) (string, error) {
	cmd := exec.Command("go", slices.Concat([]string{"list"}, flags, patterns)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%v: %w", cmd, err)
	}
	return string(out), err
}

// placesOf returns the places of one package.
func placesOf(pkg *types.Package) (found []string) {
	add := func(form string, args ...any) { found = append(found, pkg.Name()+"."+fmt.Sprintf(form, args...)) }
	params := func(name string, sig *types.Signature) {
		for i := range sig.Params().Len() {
			if p := sig.Params().At(i); carriesCode(p.Type()) {
				add("%s(%s)", name, p.Name())
			}
		}
	}
	for _, name := range pkg.Scope().Names() {
		obj := pkg.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		switch obj := obj.(type) {
		case *types.Var: // a program may assign a function to the variable
			if carriesCode(obj.Type()) && !types.Identical(obj.Type(), types.Universe.Lookup("error").Type()) {
				add("%s", name)
			}
		case *types.Func:
			params(name, obj.Signature())
		case *types.TypeName:
			named, ok := types.Unalias(obj.Type()).(*types.Named)
			if !ok {
				continue
			}
			for m := range named.Methods() {
				if m.Exported() {
					params(name+"."+m.Name(), m.Signature())
				}
			}
			switch u := named.Underlying().(type) {
			case *types.Struct:
				for f := range u.Fields() {
					if f.Exported() && carriesCode(f.Type()) {
						add("%s.%s", name, f.Name())
					}
				}
			case *types.Interface:
				for m := range u.Methods() {
					if implementable(u) {
						add("%s.%s", name, m.Name())
					}
				}
			case *types.Signature:
				add("%s", name)
			}
		}
	}
	return found
}

// implementable reports whether a program can implement an interface: it has methods, and all of them are exported.
func implementable(i *types.Interface) bool {
	for m := range i.Methods() {
		if !m.Exported() {
			return false
		}
	}
	return i.NumMethods() > 0
}

// opaque lists concrete types of other packages whose methods call code of a program.
var opaque = map[string]bool{
	"log/slog.Logger": true, "os/exec.Cmd": true, "net/http.Client": true, "net/http.Request": true, "net/http.Server": true,
	"regexp.Regexp": true,
}

// carriesCode reports whether the library may call code of the program through a value of type t. It returns false for
// contexts, for the types of this repository, whose fields and methods are places themselves, and for interfaces that a
// program cannot implement.
func carriesCode(t types.Type) bool {
	switch t := types.Unalias(t).(type) {
	case *types.Map:
		return carriesCode(t.Key()) || carriesCode(t.Elem())
	case interface{ Elem() types.Type }: // a pointer, a slice, an array or a channel
		return carriesCode(t.Elem())
	case *types.Signature:
		return true
	case *types.Interface:
		return implementable(t) || t.NumMethods() == 0 // String, Error and Format of any value
	case *types.Named:
		obj := t.Obj()
		if obj.Pkg() == nil { // error
			return true
		}
		full := obj.Pkg().Path() + "." + obj.Name()
		if full == "context.Context" || strings.HasPrefix(full, root) {
			return false
		}
		switch u := t.Underlying().(type) {
		case *types.Interface:
			return implementable(u)
		case *types.Signature:
			return true
		}
		return opaque[full]
	}
	return false
}

const root = "github.com/tooldeadline/tooldeadline/"
