//go:build linux

package procgroup_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A stuck is code of the caller's that blocks until the end of the test.
type stuck chan struct{}

func newStuck(t *testing.T) stuck {
	s := make(stuck)
	t.Cleanup(func() { close(s) })
	return s
}

func (s stuck) wait() { <-s }

// A badError is an error of which a method misbehaves.
type badError struct{ text, as func() }

func (e *badError) Error() string {
	if e.text != nil {
		e.text()
	}
	return "bad"
}

func (e *badError) As(any) bool {
	if e.as != nil {
		e.as()
	}
	return false
}

func (e *badError) Is(error) bool { return e.As(nil) }

type (
	readFunc  func([]byte) (int, error)
	writeFunc func([]byte) (int, error)
)

func (f readFunc) Read(p []byte) (int, error)   { return f(p) }
func (f writeFunc) Write(p []byte) (int, error) { return f(p) }

// ends are the ways in which a command ends whose caller misbehaves.
var ends = []struct {
	name, script string
	total        time.Duration
}{
	{"its own end", "echo a; exit 3", 0},
	{"a limit", "echo a; exec sleep 60", 300 * time.Millisecond},
}

// mustReturn runs a command and fails the test if that hangs.
func mustReturn(t *testing.T, cmd *exec.Cmd, opts ...procgroup.Option) (r *procgroup.Result, err error) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		r, err = procgroup.Run(context.Background(), cmd, opts...)
	}()
	select {
	case <-done:
		return r, err
	case <-time.After(time.Minute):
		t.Fatal("it has not returned after a minute")
		return nil, nil
	}
}

// SPEC 6.11, 3.24: whatever the reader and the writers of the caller do, the call returns, and reads and calls nothing any
// more.
func TestMisbehavingReadersAndWriters(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]func(s stuck) func(p []byte) (int, error){
		"blocks": func(s stuck) func([]byte) (int, error) {
			return func(p []byte) (int, error) { s.wait(); return len(p), nil }
		},
		"nothing":  func(stuck) func([]byte) (int, error) { return func([]byte) (int, error) { return 0, nil } },
		"too much": func(stuck) func([]byte) (int, error) { return func(p []byte) (int, error) { return len(p) + 1, nil } },
		"negative": func(stuck) func([]byte) (int, error) { return func([]byte) (int, error) { return -1, nil } },
		"panics":   func(stuck) func([]byte) (int, error) { return func([]byte) (int, error) { panic("bad") } },
		"goexit": func(stuck) func([]byte) (int, error) {
			return func([]byte) (int, error) { runtime.Goexit(); return 0, nil }
		},
		"endless": func(stuck) func([]byte) (int, error) { return func(p []byte) (int, error) { return len(p), nil } },
		"error": func(stuck) func([]byte) (int, error) {
			return func([]byte) (int, error) { return 0, errors.New("bad") }
		},
		"all, EOF":  func(stuck) func([]byte) (int, error) { return func(p []byte) (int, error) { return len(p), io.EOF } },
		"text":      func(s stuck) func([]byte) (int, error) { return returning(&badError{text: s.wait}) },
		"textPanic": func(stuck) func([]byte) (int, error) { return returning(&badError{text: func() { panic("bad") }}) },
		"textExit":  func(stuck) func([]byte) (int, error) { return returning(&badError{text: runtime.Goexit}) },
		"as":        func(s stuck) func([]byte) (int, error) { return returning(&badError{as: s.wait}) },
		"asPanic":   func(stuck) func([]byte) (int, error) { return returning(&badError{as: func() { panic("bad") }}) },
		"asExit":    func(stuck) func([]byte) (int, error) { return returning(&badError{as: runtime.Goexit}) },
	} {
		for _, end := range ends {
			for _, where := range []string{"stdin", "stdout", "stderr", "both"} {
				t.Run(name+"/"+where+"/"+end.name, func(t *testing.T) {
					t.Parallel()
					s := newStuck(t)
					cmd := exec.Command("sh", "-c", end.script)
					f := bad(s)
					switch where {
					case "stdin":
						cmd.Stdin = readFunc(f)
					case "stdout":
						cmd.Stdout = writeFunc(f)
					case "stderr":
						cmd.Stderr = writeFunc(f)
					case "both":
						w := writeFunc(f)
						cmd.Stdout, cmd.Stderr = &w, &w
					}
					r, err := mustReturn(t, cmd, procgroup.WithKillGrace(100*time.Millisecond), procgroup.WithLimits(timeout.Config{Total: end.total}),
						procgroup.WithOptions(timeout.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))))
					if r == nil || err == nil {
						t.Fatal(r, err)
					}
					if r.Reason == procgroup.Exited && r.ExitCode != 3 && r.ExitCode != 141 { // SIGPIPE after a writer has failed
						t.Errorf("%+v", r)
					}
				})
			}
		}
	}
}

func returning(err error) func([]byte) (int, error) {
	return func([]byte) (int, error) { return 0, err }
}

// SPEC 3.15, 3.24: a reader that never gives anything is not read after the end.
func TestReaderOfNothingIsLeftAlone(t *testing.T) {
	for _, end := range ends {
		cmd := exec.Command("sh", "-c", end.script)
		cmd.Stdin = readFunc(func([]byte) (int, error) { return 0, nil })
		if r, err := mustReturn(t, cmd, procgroup.WithKillGrace(100*time.Millisecond), procgroup.WithLimits(timeout.Config{Total: end.total})); r == nil {
			t.Fatal(err)
		}
		until(t, "its goroutine to end", func() bool {
			buf := make([]byte, 1<<20)
			return !strings.Contains(string(buf[:runtime.Stack(buf, true)]), "capture.(*input).copy")
		})
	}
}

// SPEC 6.11, 3.24: a function of WithInputWait that blocks, ends its goroutine or calls back keeps nothing from ending.
func TestMisbehavingInputWait(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]func(s stuck, p *procgroup.Process){
		"blocks":  func(s stuck, _ *procgroup.Process) { s.wait() },
		"waits":   func(_ stuck, p *procgroup.Process) { _, _ = p.Wait() },
		"calls":   func(s stuck, p *procgroup.Process) { p.Answered(); _ = p.Input(); _ = p.Signal(nil); s.wait() },
		"panics":  func(stuck, *procgroup.Process) { panic("bad") },
		"goexits": func(stuck, *procgroup.Process) { runtime.Goexit() },
	} {
		for _, end := range []string{"limit", "abort", "StopOnInput", "own end", "closing"} {
			t.Run(name+"/"+end, func(t *testing.T) {
				t.Parallel()
				s := newStuck(t)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				cmd := exec.Command("sh", "-c", "printf 'name? '; read x")
				in, err := cmd.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				defer in.Close()
				var p *procgroup.Process
				var once sync.Once
				started, called := make(chan struct{}), make(chan struct{})
				opts := []procgroup.Option{procgroup.WithKillGrace(100 * time.Millisecond), procgroup.WithInputWait(func(procgroup.InputWait) {
					<-started
					once.Do(func() { close(called) })
					bad(s, p)
				})}
				switch end {
				case "limit":
					opts = append(opts, procgroup.WithLimits(timeout.Config{Total: 3 * time.Second}))
				case "StopOnInput":
					opts = append(opts, procgroup.StopOnInput())
				}
				if p, err = procgroup.Start(ctx, cmd, opts...); err != nil {
					t.Fatal(err)
				}
				close(started)
				done := make(chan struct{})
				go func() {
					defer close(done)
					_, _ = p.Wait()
				}()
				minute := time.After(time.Minute)
				select {
				case <-called:
				case <-minute:
					t.Fatal("it was not called within a minute")
				}
				switch end {
				case "abort":
					cancel()
				case "own end":
					_, _ = in.Write([]byte("x\n"))
				case "closing":
					in.Close()
				}
				select {
				case <-done:
				case <-minute:
					_ = p.Signal(nil)
					t.Error("it has not returned after a minute")
				}
				if r, err := p.Wait(); r == nil || len(undying(r.Survivors)) > 0 {
					t.Error(r, err)
				}
			})
		}
	}
}
