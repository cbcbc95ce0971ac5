package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

func TestMain(m *testing.M) {
	harness.Main(m, map[string]func(){"quickstart": main}, harness.Options{})
}

// A pipeFile is a pipe in memory.
type pipeFile struct{ *io.PipeReader }

func (pipeFile) Stat() (fs.FileInfo, error) { return nil, fs.ErrInvalid }

// shown runs all four in a bubble, with files that take time. When a text is printed, the user presses Ctrl-C.
func shown(t *testing.T, interrupt string) (out string, code int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		files := &slowFS{FS: fstest.MapFS{"a.txt": {Data: []byte("a")}, "empty": {}, "sub/b.txt": {Data: bytes.Repeat([]byte("b"), 10_000)}}, takes: 10 * time.Millisecond}
		pipe := func() (fs.File, func(), error) {
			r, w := io.Pipe()
			return pipeFile{r}, func() { w.Close() }, nil
		}
		read, write := io.Pipe()
		done := make(chan bool)
		go func() {
			defer close(done)
			for lines := bufio.NewScanner(read); lines.Scan(); {
				if out += lines.Text() + "\n"; interrupt != "" && strings.HasPrefix(lines.Text(), interrupt) {
					cancel()
				}
			}
		}()
		var err error
		if code, err = showCases(ctx, "/root", cases(files, pipe), write); err != nil {
			t.Error(err)
		}
		write.Close()
		<-done
	})
	return out, code
}

func TestFourRuns(t *testing.T) {
	out, code := shown(t, "")
	runs := regexp.MustCompile(`(?m)^\d\. `).Split(out, -1)
	if len(runs) != 5 || code != 0 || !strings.Contains(runs[0], "/root") || !strings.HasSuffix(out, "\nAll four runs ended as they should, in 6.3 s.\n") {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	for i, lines := range [][]string{
		{`error +<nil>`, `exit code +0`, `elapsed +3(\.01)?s of 1m0s`, `longest silence +10ms of 1s`, `result +[1-9]\d* files`, `heartbeats +[1-9]`},
		{
			`error +No progress for 1s \(idle timeout\)\. Tool should call heartbeat\(\) during long work\.`,
			`exit code +124`, `longest silence +1s of 1s`, `partial result +[1-9]\d* files`,
			`it hung in +\w+\.hashFile hash\.go:\d+`, `it hung in +\w+\.hashOne hash\.go:\d+`,
		},
		{
			`error +Tool exceeded wall-clock limit of 1\.5s\.`,
			`exit code +124`, `elapsed +1\.5s of 1\.5s`, `partial result +[1-9]\d* files`,
		},
		{`error +Tool was aborted: .*`, `exit code +130`, `partial result +[1-9]\d* files`},
	} {
		for _, line := range append(lines, `last file +[0-9a-f]{8}\.\.\. +\S`, `as expected +yes`) {
			if !regexp.MustCompile(`(?m)^   ` + line).MatchString(runs[i+1]) {
				t.Errorf("run %d has no line %q\n%s", i+1, line, runs[i+1])
			}
		}
	}
}

// Ctrl-C ends the program, except in the fourth run, which it is meant for.
func TestInterrupt(t *testing.T) {
	for at, want := range map[string]struct {
		code int
		line string
	}{
		"1. Long":    {130, "Interrupted in run 1; "},
		"4. Aborted": {0, "All four runs ended as they should"},
	} {
		if out, code := shown(t, at); code != want.code || !strings.Contains(out, want.line) {
			t.Errorf("exit code %d, want %d and %q in:\n%s", code, want.code, want.line, out)
		}
	}
}

// The program itself, with a Ctrl-C in its first run.
func TestProgram(t *testing.T) {
	cmd := harness.Command("quickstart", ".")
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var seen strings.Builder
	for lines := bufio.NewScanner(io.TeeReader(stdout, &seen)); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "1. Long") {
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Skip(err) // as on Windows
			}
		}
	}
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 130 || !strings.Contains(seen.String(), "Interrupted in run 1; ") {
		t.Errorf("%v:\n%s", cmd.ProcessState, &seen)
	}
}

func TestBadArguments(t *testing.T) {
	dir := t.TempDir()
	file, empty, missing := filepath.Join(dir, "file"), filepath.Join(dir, "empty"), filepath.Join(dir, "missing")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(empty, "empty too"), 0o755); err != nil {
		t.Fatal(err)
	}
	const accepted = "want a directory with files in it, or no PATH"
	for name, tc := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"not found":       {[]string{missing}, 2, []string{strconv.Quote(missing), accepted}},
		"not a directory": {[]string{file}, 2, []string{strconv.Quote(file), "no files", accepted}},
		"empty tree":      {[]string{empty}, 2, []string{strconv.Quote(empty), "no files", accepted}},
		"empty argument":  {[]string{""}, 2, []string{`""`, accepted}},
		"two arguments":   {[]string{dir, dir}, 2, []string{"usage: quickstart [PATH]"}},
		"a flag":          {[]string{"-x"}, 2, []string{"usage: quickstart [PATH]"}},
		"a flag of two":   {[]string{dir, "-h"}, 2, []string{"usage: quickstart [PATH]"}},
	} {
		var stdout, stderr strings.Builder
		if code := run(t.Context(), tc.args, &stdout, &stderr); code != tc.code || stdout.Len() > 0 {
			t.Errorf("%s: exit code %d, want %d, %q", name, code, tc.code, &stdout)
		}
		for _, want := range tc.want {
			if !strings.Contains(stderr.String(), want) {
				t.Errorf("%s: stderr is %q, want %q in it", name, &stderr, want)
			}
		}
	}
}

func TestHelp(t *testing.T) {
	for _, flag := range []string{"-h", "-help", "--help"} {
		var stdout, stderr strings.Builder
		if code := run(t.Context(), []string{flag}, &stdout, &stderr); code != 0 || stdout.String() != usage || stderr.Len() > 0 {
			t.Errorf("%s: exit code %d, %q, %q", flag, code, &stdout, &stderr)
		}
	}
}

// A full is a disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestFullDisk(t *testing.T) {
	for _, arg := range []string{".", "-h"} {
		var stderr strings.Builder
		if code := run(t.Context(), []string{arg}, full{}, &stderr); code != 1 || stderr.String() != "quickstart: no space left\n" {
			t.Errorf("%s: exit code %d, %q", arg, code, &stderr)
		}
	}
}

// A lockedFS has files that nobody may open.
type lockedFS struct{ fs.FS }

func (l lockedFS) Open(name string) (fs.File, error) {
	if name != "." {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return l.FS.Open(name)
}

func TestUnreadableTree(t *testing.T) {
	files := fstest.MapFS{"a": {}}
	if err := checkTree(".", files); err != nil {
		t.Error(err)
	}
	if err := checkTree(".", lockedFS{files}); err == nil || !strings.Contains(err.Error(), "no files that can be read") {
		t.Error(err)
	}
}
