//go:build unix

package procgroup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/machine"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
)

// A spillDirAt is a SpillDir, with its path.
type spillDirAt struct {
	*procgroup.SpillDir
	path string
}

func spillDir(t *testing.T, max int64) spillDirAt {
	t.Helper()
	parent := t.TempDir()
	made, err := procgroup.NewSpillDir(parent, max)
	if err != nil {
		t.Fatal(err)
	}
	all, _ := filepath.Glob(filepath.Join(parent, "*"))
	if len(all) != 1 {
		t.Fatal(all)
	}
	dir := spillDirAt{made, all[0]}
	t.Cleanup(func() {
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(dir.path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the directory remains: %v", err)
		}
	})
	return dir
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// pattern is what a simulated process writes to a stream of its own.
func pattern(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = ByteOf(1, int64(i))
	}
	return string(b)
}

// checkSpill compares the file with the first bytes of all, which must end with err if something is missing.
func checkSpill(t *testing.T, s procgroup.Spill, all string, kept int, err error) {
	t.Helper()
	if s.Bytes != int64(kept) || !errors.Is(s.Err, err) || err == nil && s.Err != nil {
		t.Errorf("%+v, want %d bytes, %v", s, kept, err)
	}
	if kept > 0 && mustRead(t, s.Path) != all[:kept] {
		t.Errorf("the file has other bytes: %+v", s)
	}
}

// SPEC 6.20: all of the output goes to a file that nobody else can read, whatever the buffers keep, and with and without writers
// and callbacks of the caller, which get all of it too.
func TestSpill(t *testing.T) {
	const size = 500_000
	all := pattern(size)
	for name, script := range map[string]Script{"a flood": {writes(size)}, "small": {writes(10), sleeps(time.Second), writes(size - 10), sleeps(time.Second)}} {
		for _, writer := range []bool{false, true} {
			for how, output := range map[string]procgroup.Capture{
				"two pipes": {}, "one pipe": {OnePipe: true}, "a callback": {Each: func(c procgroup.Chunk) {
					if !strings.Contains(all, string(c.Data[:min(len(c.Data), 100)])) {
						t.Error("a chunk has what the command did not write")
					}
				}},
			} {
				dir := spillDir(t, 0)
				output.Spill, output.Head, output.Tail = dir.SpillDir, 20, 20
				var out bytes.Buffer
				Test(t, Scenario{
					Name: fmt.Sprintf("%s, %s, writer %v", name, how, writer), Script: script,
					Options: []procgroup.Option{output},
					Set: func(r *Run) {
						if writer {
							r.Cmd.Stdout = &out
						}
					},
					Check: func(r *Run) {
						checkSpill(r.T, r.Result.Spill, all, size, nil)
						if kept := string(r.Result.Combined.Bytes()); kept != all[:20]+all[size-20:] {
							r.Errorf("%q is kept", kept)
						}
						if writer && out.String() != all {
							r.Errorf("the writer got %d bytes", out.Len())
						}
						file, err1 := os.Stat(r.Result.Spill.Path)
						parent, err2 := os.Stat(dir.path)
						if err1 != nil || err2 != nil || file.Mode() != 0o600 || parent.Mode() != fs.ModeDir|0o700 {
							r.Errorf("%v in %v; %v, %v", file.Mode(), parent.Mode(), err1, err2)
						}
					},
				})
			}
		}
	}
}

// SPEC 6.20: the file has both streams in the order of the combined output.
func TestSpillOfBothStreams(t *testing.T) {
	dir := spillDir(t, 0)
	Test(t, Scenario{
		Name: "in turns", Script: Script{prints, sleeps(1), {Do: Write, FD: 2, N: 2}, sleeps(1), prints}, Options: []procgroup.Option{procgroup.Capture{Spill: dir.SpillDir}},
		Check: func(r *Run) { checkSpill(r.T, r.Result.Spill, "aABb", 4, nil) },
	})
}

// SPEC 6.20: the bounds of the command and of the directory, to the byte. Output without room is counted.
func TestSpillBounds(t *testing.T) {
	dir := spillDir(t, 10)
	run := func(n int, max int64, kept int) (s procgroup.Spill) {
		var full error
		if kept < n {
			full = io.ErrShortWrite
		}
		Test(t, Scenario{
			Name: fmt.Sprintf("%d of %d bytes", kept, n), Script: Script{writes(n)}, Options: []procgroup.Option{procgroup.Capture{Spill: dir.SpillDir, SpillMax: max}},
			Check: func(r *Run) {
				s = r.Result.Spill
				checkSpill(r.T, s, pattern(n), kept, full)
				is(outcome{Stdout: pattern(n), Combined: pattern(n)})(r)
			},
		})
		return s
	}
	if s := run(0, 4, 0); s != (procgroup.Spill{}) {
		t.Errorf("a silent command: %+v", s)
	}
	first := run(4, 4, 4)
	run(5, 4, 4)
	run(3, 4, 2) // beyond the bound of the directory
	run(1, 4, 0)
	if err := errors.Join(dir.Remove(first.Path), dir.Remove(first.Path), dir.Remove("/etc/passwd")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(first.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Error("not removed")
	}
	run(6, 0, 4) // after a file was removed
}

// SPEC 6.20: the directory's bound holds for commands that write at once.
func TestSpillsAtOnce(t *testing.T) {
	const max = 300_000
	dir := spillDir(t, max)
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				m := New(Script{writes(100_000)})
				defer m.Off()
				if r, err := procgroup.Run(machine.With(context.Background(), m), tool(), procgroup.Capture{Spill: dir.SpillDir}); err != nil || r.Stdout.Total != 100_000 {
					t.Error(r, err)
				}
			})
		}
		all.Wait()
	})
	files, _ := filepath.Glob(filepath.Join(dir.path, "*"))
	var sum int64
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		sum += info.Size()
	}
	if sum != max {
		t.Errorf("%d bytes in %d files, want %d", sum, len(files), max)
	}
}

// SPEC 6.20: no error of the disk is one of the command.
func TestSpillFails(t *testing.T) {
	twice := Script{prints, sleeps(2 * time.Second), prints, exits(3)}
	want := is(outcome{Error: "exit status 3", Stdout: "ab", Combined: "ab"})
	dir := spillDir(t, 0)
	os.Remove(dir.path)
	rows := []Scenario{{
		Name: "the directory is gone", Script: twice, Options: []procgroup.Option{procgroup.Capture{Spill: dir.SpillDir}},
		Check: func(r *Run) { want(r); checkSpill(r.T, r.Result.Spill, "", 0, fs.ErrNotExist) },
	}}
	for name, remove := range map[string]func(*procgroup.SpillDir, string) error{
		"the file is removed":      (*procgroup.SpillDir).Remove,
		"the directory is removed": func(d *procgroup.SpillDir, _ string) error { return d.Close() },
	} {
		dir := spillDir(t, 0)
		rows = append(rows, Scenario{
			Name: name, Script: twice, Options: []procgroup.Option{procgroup.Capture{Spill: dir.SpillDir}},
			Events: []Event{{At: time.Second, Do: func(r *Run) {
				files, _ := filepath.Glob(filepath.Join(dir.path, "*"))
				if len(files) != 1 || remove(dir.SpillDir, files[0]) != nil {
					r.Error(files)
				}
			}}},
			Check: func(r *Run) {
				want(r)
				if !errors.Is(r.Result.Spill.Err, fs.ErrClosed) {
					r.Errorf("%+v", r.Result.Spill)
				}
			},
		})
	}
	Test(t, rows...)
}
