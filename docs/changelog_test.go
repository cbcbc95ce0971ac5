package docs_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every public package of the first release is in the changelog, and so is every exported
// package-level name that a later release adds.
func TestChangelog(t *testing.T) {
	if _, err := os.Stat(".git"); errors.Is(err, os.ErrNotExist) {
		t.Skip("the sources do not come from a git clone")
	}
	text, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	now := map[string]string{}
	eachFile(t, isLibrary, func(file, text string) { now[filepath.ToSlash(file)] = text })

	tag, before := released(t)
	for _, name := range unmentioned(string(text), tag, now, before) {
		t.Errorf("CHANGELOG.md does not mention %s", name)
	}
}

// released returns the last tag of the core and the library files that it has. The tag is empty
// where there is none, as before the first release and in a shallow clone.
func released(t *testing.T) (tag string, files map[string]string) {
	out, err := exec.Command("git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*").Output()
	if err != nil {
		return "", nil
	}
	tag = strings.TrimSpace(string(out))
	archive, err := exec.Command("git", "archive", "--format=tar", tag).Output()
	if err != nil {
		t.Fatalf("git archive %s: %v", tag, err)
	}
	files = map[string]string{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return tag, files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg && isLibrary(h.Name) {
			text, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			files[h.Name] = string(text)
		}
	}
}

// isLibrary reports whether a file is part of a package that users may import.
func isLibrary(file string) bool {
	file = filepath.ToSlash(file)
	for _, dir := range strings.Split(path.Dir(file), "/") {
		switch dir {
		case ".", "benchmarks", "cmd", "docs", "examples", "internal", "interop", "testdata":
			return false
		}
	}
	return path.Ext(file) == ".go" && !strings.HasSuffix(file, "_test.go")
}

// unmentioned returns the packages among the files now that the changelog does not mention, where
// tag is empty, and otherwise the names that are not in the files before and that the changelog
// does not mention above the heading of the tag.
func unmentioned(changelog, tag string, now, before map[string]string) (missing []string) {
	if tag != "" {
		changelog, _, _ = strings.Cut(changelog, "\n## ["+strings.TrimPrefix(tag, "v")+"]")
	}
	names, old := exported(now), exported(before)
	mentioned := map[string]bool{} // before the first release all names of a package want the same
	for name := range names {
		pkg, id, _ := strings.Cut(name, "#")
		want, full := id, fmt.Sprintf("%s.%s", pkg, id)
		if tag == "" {
			want, full = pkg, pkg
		}
		if old[name] {
			continue
		}
		if _, known := mentioned[want]; !known {
			mentioned[want] = regexp.MustCompile(`(^|[^\w/])` + regexp.QuoteMeta(want) + `($|[^\w/])`).MatchString(changelog)
		}
		if !mentioned[want] {
			missing = append(missing, full)
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// exported returns the exported package-level names in files as "folder#Name". A file that cannot
// be parsed has none: the compiler says so.
func exported(files map[string]string) map[string]bool {
	names := map[string]bool{}
	for file, text := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		if err != nil {
			continue
		}
		add := func(id *ast.Ident) {
			if id.IsExported() {
				names[path.Dir(file)+"#"+id.Name] = true
			}
		}
		for _, decl := range parsed.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					add(d.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						add(s.Name)
					case *ast.ValueSpec:
						for _, id := range s.Names {
							add(id)
						}
					}
				}
			}
		}
	}
	return names
}
