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

	"github.com/google/go-cmp/cmp"
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

func TestUnmentioned(t *testing.T) {
	now := map[string]string{
		"a/a.go":   "package a\ntype T int\nfunc (T) Method() {}\nfunc F() {}\nfunc f() {}",
		"a/b/b.go": "package b\nconst (\nC = 1\nc = 2\n)\nvar V, W int",
	}
	for _, tt := range []struct {
		name, changelog, tag string
		before               map[string]string
		want                 []string
	}{
		{"before the first release, both packages", "- `a`, and `a/b` too", "", nil, nil},
		{"before the first release, one package", "- `a`", "", nil, []string{"a/b"}},
		{"before the first release, the inner one", "- `a/b`", "", nil, []string{"a"}},
		{"before the first release, none", "- a_b", "", nil, []string{"a", "a/b"}},
		{"all is old", "", "v0.1.0", now, nil},
		{"new names", "## [Unreleased]\n`a.F`, `W`, `b.C`", "v0.1.0", map[string]string{"a/a.go": "package a\ntype T string"}, []string{"a/b.V"}},
		{"a name that was in another package", "", "v0.1.0", map[string]string{"a/a.go": now["a/a.go"] + "\nvar C, V, W int"}, []string{"a/b.C", "a/b.V", "a/b.W"}},
		{"a name that an older release mentions", "## [Unreleased]\n## [0.1.0]\nF", "v0.1.0", map[string]string{"a/a.go": "package a\ntype T int", "a/b/b.go": now["a/b/b.go"]}, []string{"a.F"}},
		{"a part of a word", "Fine", "v0.1.0", map[string]string{"a/a.go": "package a\ntype T int", "a/b/b.go": now["a/b/b.go"]}, []string{"a.F"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, unmentioned(tt.changelog, tt.tag, now, tt.before)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
