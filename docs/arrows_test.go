package docs_test

import (
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rooms are the folders that have Go files, from the top floor down. A package imports only what
// stands below its own line; packages of one line do not know each other.
var rooms = []string{
	"benchmarks/... examples/... cmd/... worker/temporalworker/interop interop/terminal internal/callsites",
	"progress/mcpsdk/internal/... progress/mcpgo/internal/... timeout/inspect/internal/...",
	"oteltimeout worker/natsworker worker/temporalworker progress/mcpsdk progress/mcpgo progress/task/natstasks",
	"progress/task/tasktest progress/internal/sdktest .",
	"progress/adapter",
	"progress/task",
	"progress/request progress/toolcall progress/hosts",
	"progress",
	"procgroup/job/...",
	"procgroup/internal/simulate",
	"procgroup stream worker/lease",
	"procgroup/internal/machine",
	"procgroup/host procgroup/internal/proctree procgroup/internal/capture procgroup/internal/waits",
	"procgroup/internal/work",
	"procgroup/internal/cgroup",
	"procgroup/internal/kept procgroup/internal/stackdump procgroup/internal/terminal",
	"procgroup/internal/patient procgroup/internal/procfs procgroup/internal/scratch procgroup/internal/screen procgroup/stdio",
	"timeout/inspect timeout/httptimeout heartbeat/notify",
	"timeout/policy",
	"timeout",
	"heartbeat",
	"internal/...",
}

// floor returns the line of rooms that a folder is in, 0 for the top one, or -1.
func floor(dir string) int {
	return slices.IndexFunc(rooms, func(line string) bool {
		return slices.ContainsFunc(strings.Fields(line), func(room string) bool {
			below, tree := strings.CutSuffix(room, "/...")
			return dir == room || tree && strings.HasPrefix(dir+"/", below+"/")
		})
	})
}

// An import of this repository leads down, or stays within a tree that is one line of rooms.
func TestArrowsRunDown(t *testing.T) {
	isCode := func(file string) bool {
		return filepath.Ext(file) == ".go" && !strings.HasSuffix(file, "_test.go") && !strings.Contains(file, "testdata")
	}
	arrows := 0
	eachFile(t, isCode, func(file, text string) {
		from := path.Dir(filepath.ToSlash(file))
		if floor(from) < 0 {
			t.Errorf("%s is in none of the rooms", from)
			return
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ImportsOnly)
		if err != nil {
			t.Error(err)
			return
		}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			to, ours := strings.CutPrefix(imported, core)
			if err != nil || !ours || to == from {
				continue
			}
			arrows++
			switch below := floor(to) - floor(from); {
			case floor(to) < 0:
				t.Errorf("%s imports %s, which is in none of the rooms", file, to)
			case below < 0:
				t.Errorf("%s imports %s, which is above it", file, to)
			case below == 0 && !related(from, to):
				t.Errorf("%s imports %s, which is beside it", file, to)
			}
		}
	})
	if arrows < 100 {
		t.Errorf("only %d imports found", arrows)
	}
}

// related reports whether two folders are within one room that is a whole tree.
func related(a, b string) bool {
	for _, line := range rooms {
		for _, room := range strings.Fields(line) {
			below, tree := strings.CutSuffix(room, "/...")
			if tree && strings.HasPrefix(a, below) && strings.HasPrefix(b, below) {
				return true
			}
		}
	}
	return false
}

// A folder has the name of its package, but for programs.
func TestFoldersAreNamedAsTheirPackages(t *testing.T) {
	isCode := func(file string) bool {
		return filepath.Ext(file) == ".go" && !strings.HasSuffix(file, "_test.go") && strings.Contains(filepath.ToSlash(file), "/")
	}
	eachFile(t, isCode, func(file, text string) {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.PackageClauseOnly)
		if err != nil {
			t.Error(err)
			return
		}
		if name := parsed.Name.Name; name != "main" && name != path.Base(path.Dir(filepath.ToSlash(file))) {
			t.Errorf("%s is of package %s", file, name)
		}
	})
}
