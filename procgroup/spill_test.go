//go:build linux

package procgroup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tooldeadline/tooldeadline/procgroup"
)

func spillDir(t *testing.T, max int64) *procgroup.SpillDir {
	t.Helper()
	dir, err := procgroup.NewSpillDir(t.TempDir(), max)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(dir.Path()); !errors.Is(err, fs.ErrNotExist) {
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

// SPEC 6.20: all of the output goes to a file that nobody else can read, with and without writers
// and callbacks of the caller, which get all of it too.
func TestSpill(t *testing.T) {
	t.Parallel()
	const script = `i=0; while [ $i -lt 300 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done`
	for _, writer := range []bool{false, true} {
		for name, more := range map[string]procgroup.Option{
			"two pipes": nil, "one pipe": procgroup.WithOnePipe(), "a callback": procgroup.WithOutput(func(procgroup.Chunk) {}),
		} {
			t.Run(fmt.Sprintf("%s, writer %v", name, writer), func(t *testing.T) {
				t.Parallel()
				dir := spillDir(t, 0)
				var out bytes.Buffer
				cmd := exec.Command("sh", "-c", script)
				if writer {
					cmd.Stdout = &out
				}
				r, err := within(t, longLimit, cmd, procgroup.WithSpill(dir, 0), procgroup.WithHead(20), procgroup.WithMaxOutput(20), more)
				check(t, r, err, want{})
				text := mustRead(t, r.Spill.Path)
				if r.Spill.Err != nil || r.Spill.Bytes != r.Combined.Total || int64(len(text)) != r.Combined.Total {
					t.Errorf("%+v of %d bytes", r.Spill, r.Combined.Total)
				}
				if kept := string(r.Combined.Bytes()); text[:20]+text[len(text)-20:] != kept {
					t.Errorf("the file has another order than the output: %q...%q, %q", text[:20], text[len(text)-20:], kept)
				}
				for _, stream := range []string{"out", "err"} {
					var all []string
					for line := range strings.Lines(text) {
						if strings.HasPrefix(line, stream) {
							all = append(all, line)
						}
					}
					if name == "one pipe" && (len(all) != 300 || all[299] != stream+" 299\n") {
						t.Errorf("%d lines of %s", len(all), stream)
					}
				}
				if writer && int64(out.Len()) != r.Stdout.Total {
					t.Errorf("the writer got %d bytes of %d", out.Len(), r.Stdout.Total)
				}
				file, err1 := os.Stat(r.Spill.Path)
				parent, err2 := os.Stat(dir.Path())
				if err1 != nil || err2 != nil || file.Mode() != 0o600 || parent.Mode() != fs.ModeDir|0o700 {
					t.Errorf("%v in %v; %v, %v", file.Mode(), parent.Mode(), err1, err2)
				}
			})
		}
	}
}

// SPEC 6.20: what the buffers are used for is what was read, also in a flood and with a slow writer.
func TestSpillOfAFlood(t *testing.T) {
	t.Parallel()
	const size = 8 << 20
	dir := spillDir(t, 0)
	var out bytes.Buffer
	cmd := command("flood", strconv.Itoa(size))
	cmd.Stdout = &out
	r, err := within(t, longLimit, cmd, procgroup.WithSpill(dir, 0), procgroup.WithOutput(func(c procgroup.Chunk) {
		if len(bytes.Trim(c.Data, "0123456789abcdef")) > 0 {
			t.Error("a chunk has what the command did not write")
		}
	}))
	check(t, r, err, want{})
	if text := mustRead(t, r.Spill.Path); text != out.String() || len(text) != size || strings.Count(text, "0123456789abcdef") != size/16 {
		t.Errorf("%d bytes in the file, %d written", len(text), out.Len())
	}
}

// SPEC 6.20: the bounds of the command and of the directory, to the byte. Output without room is
// counted.
func TestSpillBounds(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, dir *procgroup.SpillDir, max int64, output string) procgroup.Spill {
		t.Helper()
		r, err := within(t, longLimit, exec.Command("printf", "%s", output), procgroup.WithSpill(dir, max))
		check(t, r, err, want{})
		if r.Stdout.String() != output {
			t.Errorf("output %q", r.Stdout)
		}
		if r.Spill.Path != "" {
			if text := mustRead(t, r.Spill.Path); text != output[:r.Spill.Bytes] {
				t.Errorf("the file has %q, %+v", text, r.Spill)
			}
		}
		if full := r.Spill.Bytes < int64(len(output)); errors.Is(r.Spill.Err, procgroup.ErrSpillFull) != full || (!full && r.Spill.Err != nil) {
			t.Errorf("%+v of %d bytes", r.Spill, len(output))
		}
		return r.Spill
	}
	dir := spillDir(t, 10)
	if s := run(t, dir, 4, ""); s != (procgroup.Spill{}) {
		t.Errorf("a silent command: %+v", s)
	}
	first := run(t, dir, 4, "abcd")
	if cut := run(t, dir, 4, "abcde"); first.Bytes != 4 || cut.Bytes != 4 {
		t.Errorf("%+v, %+v", first, cut)
	}
	if rest := run(t, dir, 4, "abc"); rest.Bytes != 2 {
		t.Errorf("beyond the bound of the directory: %+v", rest)
	}
	if none := run(t, dir, 4, "a"); none.Bytes != 0 {
		t.Errorf("in a full directory: %+v", none)
	}
	if err := errors.Join(dir.Remove(first.Path), dir.Remove(first.Path), dir.Remove("/etc/passwd")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(first.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Error("not removed")
	}
	if again := run(t, dir, 0, "abcdef"); again.Bytes != 4 {
		t.Errorf("after a file was removed: %+v", again)
	}
}

// SPEC 6.20: the directory's bound holds for commands that write at once.
func TestSpillsAtOnce(t *testing.T) {
	t.Parallel()
	const max = 3_000_000
	dir := spillDir(t, max)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if r, err := procgroup.Run(context.Background(), command("flood", "1000000"), procgroup.WithSpill(dir, 0)); err != nil || r.Stdout.Total != 1_000_000 {
				t.Error(r, err)
			}
		})
	}
	all.Wait()
	files, _ := filepath.Glob(filepath.Join(dir.Path(), "*"))
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
	t.Parallel()
	t.Run("the directory is gone", func(t *testing.T) {
		t.Parallel()
		dir := spillDir(t, 0)
		os.Remove(dir.Path())
		r, err := within(t, longLimit, exec.Command("sh", "-c", "echo a; sleep 0.1; echo b; exit 3"), procgroup.WithSpill(dir, 0))
		check(t, r, err, want{code: 3})
		if !errors.Is(r.Spill.Err, fs.ErrNotExist) || r.Spill.Path != "" || r.Stdout.String() != "a\nb\n" || r.Unwritten != 0 {
			t.Errorf("%+v, output %q", r.Spill, r.Stdout)
		}
	})
	t.Run("the disk is full", func(t *testing.T) {
		t.Parallel()
		mount := t.TempDir()
		if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=64k"); err != nil {
			t.Skip(err)
		}
		defer func() {
			if err := syscall.Unmount(mount, syscall.MNT_DETACH); err != nil {
				t.Error(err)
			}
		}()
		dir, err := procgroup.NewSpillDir(mount, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		r, err := within(t, longLimit, command("flood", "1000000"), procgroup.WithSpill(dir, 0))
		check(t, r, err, want{})
		info, serr := os.Stat(r.Spill.Path)
		if serr != nil || !errors.Is(r.Spill.Err, syscall.ENOSPC) || r.Spill.Bytes != info.Size() || r.Spill.Bytes == 0 || r.Stdout.Total != 1_000_000 {
			t.Errorf("%+v, %v", r.Spill, serr)
		}
	})
	t.Run("removed while the command writes", func(t *testing.T) {
		t.Parallel()
		for _, remove := range []func(*procgroup.SpillDir, string) error{
			func(d *procgroup.SpillDir, path string) error { return d.Remove(path) },
			func(d *procgroup.SpillDir, _ string) error { return d.Close() },
		} {
			dir := spillDir(t, 0)
			in, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("sh", "-c", "echo a; read x; echo b")
			cmd.Stdin = in
			first := make(chan struct{}, 9)
			p, err := procgroup.Start(context.Background(), cmd, procgroup.WithSpill(dir, 0), procgroup.WithOutput(func(procgroup.Chunk) { first <- struct{}{} }))
			if err != nil {
				t.Fatal(err)
			}
			in.Close()
			<-first
			var files []string
			for len(files) == 0 {
				files, _ = filepath.Glob(filepath.Join(dir.Path(), "*"))
			}
			if err := remove(dir, files[0]); err != nil {
				t.Error(err)
			}
			w.Close()
			r, err := p.Wait()
			check(t, r, err, want{})
			if r.Stdout.String() != "a\nb\n" || !errors.Is(r.Spill.Err, fs.ErrClosed) {
				t.Errorf("%+v, output %q", r.Spill, r.Stdout)
			}
		}
	})
}
