package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The maps in docs/internals.md have each file of their folders, and no other.
func TestInternalsMap(t *testing.T) {
	data, err := os.ReadFile("docs/internals.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"internal/pulse", "timeout", "procgroup/job", "procgroup/job/internal/transcript", "procgroup/internal/capture", "procgroup/internal/proctree", "procgroup/internal/procfs", "procgroup/host"} {
		_, section, found := strings.Cut(string(data), "\n### `"+dir+"`\n")
		if !found {
			t.Errorf("docs/internals.md has no section for %s", dir)
			continue
		}
		section, _, _ = strings.Cut(section, "\n#")
		var mapped, files []string
		for _, row := range regexp.MustCompile("(?m)^\\| `(.+\\.go)` \\|").FindAllStringSubmatch(section, -1) {
			mapped = append(mapped, row[1])
		}
		paths, err := filepath.Glob(filepath.Join(filepath.FromSlash(dir), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range paths {
			if name := filepath.Base(file); !strings.HasSuffix(name, "_test.go") {
				files = append(files, name)
			}
		}
		slices.Sort(mapped)
		slices.Sort(files)
		if diff := cmp.Diff(files, mapped); diff != "" {
			t.Errorf("the map of %s in docs/internals.md (-files +map):\n%s", dir, diff)
		}
	}
}

// The folders of the packages that the two timelines in docs/internals.md name.
var timelinePackages = map[string]string{
	"timeout": "timeout", "heartbeat": "heartbeat",
	"procgroup": "procgroup", "capture": "procgroup/internal/capture", "proctree": "procgroup/internal/proctree",
	"progress": "progress", "toolcall": "progress/toolcall", "adapter": "progress/adapter", "task": "progress/task", "mcpsdk": "progress/mcpsdk",
}

// Each function and type in the timelines of docs/internals.md exists: a name belongs to the
// package before it, unless it has one of its own, as capture.New.
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
	case *ast.Ident:
		return x.Name
	}
	return ""
}
