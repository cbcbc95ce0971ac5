package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// smallRooms is the section of docs/internals.md that packages of a few files share. Its rows are
// paths in the repository.
const smallRooms = "Small rooms"

// The tables in docs/internals.md have each file of the library and its programs once, with a
// question. A package of more than two files has a section of its own.
func TestInternalsMap(t *testing.T) {
	data, err := os.ReadFile("docs/internals.md")
	if err != nil {
		t.Fatal(err)
	}
	packages := mappedPackages(t)
	if len(packages["."]) == 0 || len(packages["procgroup"]) == 0 || len(packages["cmd/deadline"]) == 0 {
		t.Fatalf("not all packages are looked at: %d", len(packages))
	}
	mapped := map[string][]string{}
	for _, section := range strings.Split(string(data), "\n### ")[1:] {
		title, text, _ := strings.Cut(section, "\n")
		text, _, _ = strings.Cut(text, "\n#")
		home := strings.Trim(title, "`")
		for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+\\.go)` \\|(.*)\\|$").FindAllStringSubmatch(text, -1) {
			file, question := path.Join(home, row[1]), strings.TrimSpace(row[2])
			if title == smallRooms {
				file = row[1]
			}
			if !strings.HasSuffix(question, "?") {
				t.Errorf("docs/internals.md: %q of %s is no question", question, file)
			}
			if dir := path.Dir(file); title == smallRooms && len(packages[dir]) > 2 {
				t.Errorf("docs/internals.md: %s has more than two files; give it a section: ### `%s`", dir, dir)
			}
			mapped[path.Dir(file)] = append(mapped[path.Dir(file)], path.Base(file))
		}
	}
	for _, files := range mapped {
		slices.Sort(files)
	}
	for dir, files := range packages {
		if mapped[dir] == nil {
			t.Errorf("docs/internals.md has no table for %s: %s", dir, strings.Join(files, ", "))
		} else if diff := cmp.Diff(files, mapped[dir]); diff != "" {
			t.Errorf("the table of %s in docs/internals.md (-files +table):\n%s", dir, diff)
		}
	}
	for dir, files := range mapped {
		if packages[dir] == nil {
			t.Errorf("docs/internals.md has %s in %s, where there is no package to map", strings.Join(files, ", "), dir)
		}
	}
}

// mappedPackages returns the files, without tests, of each folder that docs/internals.md has to map:
// all but the programs to read, and those that measure or test from outside.
func mappedPackages(t *testing.T) map[string][]string {
	t.Helper()
	unmapped := []string{"benchmarks", "examples", "interop"}
	packages := map[string][]string{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		file, name := filepath.ToSlash(file), d.Name()
		if d.IsDir() {
			// What the go command leaves out, and the modules that npm installs.
			if slices.Contains(unmapped, file) || name == "testdata" || name == "node_modules" || name[0] == '_' || name[0] == '.' && file != "." {
				return filepath.SkipDir
			}
		} else if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			packages[path.Dir(file)] = append(packages[path.Dir(file)], name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

// The folders of the packages that the two timelines in docs/internals.md name.
var timelinePackages = map[string]string{
	"timeout": "timeout", "heartbeat": "heartbeat",
	"procgroup": "procgroup", "capture": "procgroup/internal/capture", "proctree": "procgroup/internal/proctree",
	"progress": "progress", "toolcall": "progress/toolcall", "adapter": "progress/adapter", "task": "progress/task", "mcpsdk": "progress/mcpsdk",
}

// Each function and type in the timelines of docs/internals.md exists: a name belongs to the
// package before it, unless it has one of its own, as capture.Connect.
func TestInternalsTimelines(t *testing.T) {
	data, err := os.ReadFile("docs/internals.md")
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]map[string]bool{}
	n := 0
	for _, row := range regexp.MustCompile(`(?m)^\|[^|]*\|([^|]*)\|[^|]*\|[^|]*\|$`).FindAllStringSubmatch(string(data), -1) {
		pkg := ""
		for _, word := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			name := word[1]
			if timelinePackages[name] != "" {
				pkg = name
				continue
			}
			of := pkg
			if first, rest, ok := strings.Cut(name, "."); ok && timelinePackages[first] != "" {
				of, name = first, rest
			}
			if declared[of] == nil {
				declared[of] = declarations(t, timelinePackages[of])
			}
			if n++; !declared[of][name] {
				t.Errorf("docs/internals.md names %s of package %s, which does not exist", name, of)
			}
		}
	}
	if n < 30 {
		t.Errorf("only %d names found in the timelines: are they all looked at?", n)
	}
}

// declarations returns the functions, types and methods of a package, the latter with and without
// their types.
func declarations(t *testing.T, dir string) map[string]bool {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(filepath.FromSlash(dir), "*.go"))
	if err != nil || dir == "" || len(paths) == 0 {
		t.Fatalf("%q is no package: %v", dir, err)
	}
	names := map[string]bool{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				names[d.Name.Name] = true
				if d.Recv != nil {
					names[receiver(d.Recv.List[0].Type)+"."+d.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok {
						names[s.Name.Name] = true
					}
				}
			}
		}
	}
	return names
}

// receiver returns the name of the type of a receiver.
func receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}
