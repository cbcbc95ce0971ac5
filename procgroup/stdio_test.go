//go:build linux

package procgroup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 6.11: stdin that the command does not read, and a reader that blocks for ever.
func TestStdin(t *testing.T) {
	t.Parallel()
	t.Run("read", func(t *testing.T) {
		text := strings.Repeat("hello\n", 100_000)
		cmd := exec.Command("cat")
		cmd.Stdin = strings.NewReader(text)
		r, err := within(t, time.Second, cmd)
		check(t, r, err, want{})
		if r.Stdout.String() != text {
			t.Errorf("%d bytes came back of %d", r.Stdout.Total, len(text))
		}
	})
	t.Run("never read", func(t *testing.T) {
		cmd := exec.Command("sleep", "0.1")
		cmd.Stdin = neverEnding{}
		r, err := within(t, time.Second, cmd)
		check(t, r, err, want{})
	})
	t.Run("blocks", func(t *testing.T) {
		cmd := exec.Command("true")
		reader, writer := io.Pipe()
		defer writer.Close() // otherwise the goroutine would be left behind, as documented
		cmd.Stdin = reader
		r, err := within(t, time.Second, cmd)
		check(t, r, err, want{})
	})
	t.Run("fails", func(t *testing.T) {
		cmd := exec.Command("cat")
		broken := errors.New("broken")
		cmd.Stdin = io.MultiReader(strings.NewReader("some"), errReader{broken})
		r, err := within(t, time.Second, cmd)
		check(t, r, err, want{code: 1})
		if !errors.Is(err, broken) || r.Stdout.String() != "some" || !r.State.Success() {
			t.Errorf("%v, %q, %v", err, r.Stdout, r.State)
		}
	})
	t.Run("panics", func(t *testing.T) {
		cmd := exec.Command("cat")
		cmd.Stdin = errReader{nil}
		r, err := within(t, time.Second, cmd, procgroup.WithOptions(timeout.WithName("tool")))
		check(t, r, err, want{code: 130, reason: procgroup.Aborted, message: aborted})
		if p := (*timeout.PanicError)(nil); !errors.As(err, &p) {
			t.Error(err)
		}
	})
	t.Run("pipe", func(t *testing.T) {
		cmd := exec.Command("cat")
		w, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		p, err := procgroup.Start(context.Background(), cmd)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(w, "piped")
		w.Close()
		r, err := p.Wait()
		check(t, r, err, want{})
		if r.Stdout.String() != "piped" {
			t.Errorf("%q", r.Stdout)
		}
	})
	t.Run("file", func(t *testing.T) {
		f, err := os.Open("doc.go")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		cmd := exec.Command("cat")
		cmd.Stdin = f
		r, err := within(t, time.Second, cmd)
		check(t, r, err, want{})
		if !strings.HasPrefix(r.Stdout.String(), "// Package procgroup") {
			t.Errorf("%q", r.Stdout)
		}
	})
}

type neverEnding struct{}

func (neverEnding) Read(p []byte) (int, error) { return len(p), nil }

// errReader fails, or panics where it has no error to fail with.
type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) {
	if r.err == nil {
		panic("no error")
	}
	return 0, r.err
}

// The caller's own writers get all of the output too; the error of one that fails is reported.
func TestWriters(t *testing.T) {
	t.Parallel()
	script := func() *exec.Cmd { return exec.Command("sh", "-c", "echo out; echo err >&2") }
	t.Run("both", func(t *testing.T) {
		cmd := script()
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		r, err := within(t, time.Second, cmd)
		check(t, r, err, want{})
		if stdout.String() != "out\n" || stderr.String() != "err\n" || r.Stdout.String() != "out\n" {
			t.Errorf("%q, %q, %q", &stdout, &stderr, r.Stdout)
		}
	})
	t.Run("a lot", func(t *testing.T) {
		const size = 8 << 20
		cmd := command("flood", strconv.Itoa(size))
		var stdout bytes.Buffer
		cmd.Stdout = &stdout
		r, err := within(t, longLimit, cmd, total(longLimit)...)
		check(t, r, err, want{})
		if stdout.Len() != size || r.Unwritten != 0 || !bytes.HasSuffix(stdout.Bytes(), r.Stdout.Bytes()) {
			t.Errorf("%d bytes, %d not written", stdout.Len(), r.Unwritten)
		}
	})
	t.Run("the same", func(t *testing.T) {
		cmd := script()
		var both bytes.Buffer // not safe for concurrent use: the race detector looks
		cmd.Stdout, cmd.Stderr = &both, &both
		r, err := within(t, time.Second, cmd)
		check(t, r, err, want{})
		if s := both.String(); s != "out\nerr\n" && s != "err\nout\n" {
			t.Errorf("%q", s)
		}
	})
	t.Run("fails", func(t *testing.T) {
		cmd := script()
		broken := errors.New("broken")
		cmd.Stdout = writerFunc(func([]byte) (int, error) { return 0, broken })
		r, err := within(t, time.Second, cmd)
		check(t, r, err, want{code: 1})
		if !errors.Is(err, broken) || r.Stdout.String() != "out\n" {
			t.Errorf("%v, %q", err, r.Stdout)
		}
	})
	t.Run("blocks", func(t *testing.T) {
		cmd := command("flood", "10000000")
		release := make(chan struct{})
		defer close(release)
		cmd.Stdout = writerFunc(func(p []byte) (int, error) { <-release; return len(p), nil })
		r, err := within(t, 15*time.Second+shortGrace+time.Second, cmd, total(15*time.Second)...) // for it to have written something
		if r == nil || r.ExitCode != 124 || r.Stdout.Total == 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("blocks at the end", func(t *testing.T) {
		cmd := script()
		release := make(chan struct{})
		defer close(release)
		cmd.Stdout = writerFunc(func(p []byte) (int, error) { <-release; return len(p), nil })
		r, err := within(t, time.Second+shortGrace, cmd, procgroup.WithKillGrace(shortGrace))
		check(t, r, err, want{code: 1})
		if r.Combined.Total != 8 || !r.State.Success() {
			t.Errorf("%+v", r)
		}
	})
	t.Run("panics", func(t *testing.T) {
		cmd := command("print", "stdout", "x", "100000", "1ms")
		cmd.Stdout = writerFunc(func(p []byte) (int, error) { panic("sink") })
		r, err := within(t, time.Second, cmd, procgroup.WithOptions(timeout.WithName("tool")))
		check(t, r, err, want{code: 130, reason: procgroup.Aborted, message: aborted})
		if p := (*timeout.PanicError)(nil); !errors.As(err, &p) || p.Value != "sink" {
			t.Error(err)
		}
	})
	t.Run("exits its goroutine", func(t *testing.T) {
		cmd := command("print", "stdout", "x", "100000", "1ms")
		cmd.Stdout = writerFunc(func(p []byte) (int, error) { runtime.Goexit(); return 0, nil })
		r, err := within(t, time.Second, cmd, procgroup.WithOptions(timeout.WithName("tool")))
		check(t, r, err, want{code: 130, reason: procgroup.Aborted, message: aborted})
		if !errors.Is(err, timeout.ErrGoexit) {
			t.Error(err)
		}
		for range 50 { // who writes on in its place must not take the same chunk again
			cmd := exec.Command("echo", "x")
			cmd.Stdout = writerFunc(func(p []byte) (int, error) { runtime.Goexit(); return 0, nil })
			r, err := procgroup.Run(t.Context(), cmd)
			if r == nil || r.Unwritten != 2 || !errors.Is(err, timeout.ErrGoexit) {
				t.Fatalf("%v, %+v", err, r)
			}
		}
	})
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Where a command is not started, nothing is left of its StdinPipe, as with os/exec.
func TestStdinPipeOfNothing(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, tt := range []struct {
		name string
		ctx  context.Context
		cmd  *exec.Cmd
		opt  procgroup.Option
	}{
		{"context", ended, exec.Command("true"), nil},
		{"option", context.Background(), exec.Command("true"), procgroup.WithStopSignal(syscall.Signal(0))},
		{"containment", context.Background(), exec.Command("true"), procgroup.WithContainment(procgroup.Job)},
		{"command", context.Background(), exec.Command("/no/such/command"), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, err := tt.cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			pipe := pipeOf(t, w)
			if n := openEnds(pipe); n != 2 {
				t.Fatalf("%d ends of %s", n, pipe)
			}
			if _, err := procgroup.Start(tt.ctx, tt.cmd, tt.opt); err == nil {
				t.Error("started")
			}
			if n := openEnds(pipe); n > 0 {
				t.Errorf("%d open ends of %s", n, pipe)
			}
			if _, err := w.Write([]byte("x")); !errors.Is(err, fs.ErrClosed) {
				t.Errorf("writing: %v", err)
			}
		})
	}
}

// pipeOf is what /proc/self/fd has for the pipe of w.
func pipeOf(t *testing.T, w io.Writer) string {
	t.Helper()
	info, err := w.(interface{ Stat() (fs.FileInfo, error) }).Stat()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("pipe:[%d]", info.Sys().(*syscall.Stat_t).Ino)
}

// openEnds counts the descriptors of one pipe. The count of all open files is not that of one
// test: what an earlier one has left to end by itself, such as a command of Attach, opens some too.
func openEnds(pipe string) int {
	return countOpen(func(what string) bool { return what == pipe })
}
