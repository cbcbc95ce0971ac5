//go:build unix

package procgroup_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/machine"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
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

const misbehavingGrace = 100 * time.Millisecond

// SPEC 6.11, 3.24: whatever the reader and the writers of the caller do, the call returns in time, and reads and calls nothing any
// more.
func TestMisbehavingReadersAndWriters(t *testing.T) {
	returning := func(err error) func([]byte) (int, error) { return func([]byte) (int, error) { return 0, err } }
	bad := func() { panic("bad") }
	for name, misbehaves := range map[string]func(s stuck) func(p []byte) (int, error){
		"nothing":   func(stuck) func([]byte) (int, error) { return func([]byte) (int, error) { return 0, nil } },
		"too much":  func(stuck) func([]byte) (int, error) { return func(p []byte) (int, error) { return len(p) + 1, nil } },
		"negative":  func(stuck) func([]byte) (int, error) { return func([]byte) (int, error) { return -1, nil } },
		"error":     func(stuck) func([]byte) (int, error) { return returning(errors.New("bad")) },
		"all, EOF":  func(stuck) func([]byte) (int, error) { return func(p []byte) (int, error) { return len(p), io.EOF } },
		"text":      func(s stuck) func([]byte) (int, error) { return returning(&badError{text: s.wait}) },
		"textPanic": func(stuck) func([]byte) (int, error) { return returning(&badError{text: bad}) },
		"textExit":  func(stuck) func([]byte) (int, error) { return returning(&badError{text: runtime.Goexit}) },
		"as":        func(s stuck) func([]byte) (int, error) { return returning(&badError{as: s.wait}) },
		"asPanic":   func(stuck) func([]byte) (int, error) { return returning(&badError{as: bad}) },
		"asExit":    func(stuck) func([]byte) (int, error) { return returning(&badError{as: runtime.Goexit}) },
	} {
		for end, script := range map[string]Script{
			"its own end": {prints, {Do: Read, N: 9}, sleeps(time.Second), complains, exits(3)},
			"a limit":     {prints, {Do: Read, N: 9}, complains, lasts},
		} {
			for _, where := range []string{"stdin", "stdout", "stderr", "both"} {
				t.Run(fmt.Sprintf("%s/%s/%s", name, where, end), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						m, cmd, f := New(script), tool(), misbehaves(newStuck(t))
						in, w := io.Pipe()
						defer w.Close()
						cmd.Stdin = in
						go func() { _, _ = w.Write([]byte("x")) }()
						switch where {
						case "stdin":
							cmd.Stdin = readerFunc(f)
						case "stdout":
							cmd.Stdout = writerFunc(f)
						case "stderr":
							cmd.Stderr = writerFunc(f)
						case "both":
							w := writerFunc(f)
							cmd.Stdout, cmd.Stderr = &w, &w
						}
						begun := time.Now()
						r, err := procgroup.Run(machine.With(context.Background(), m), cmd, procgroup.Stop{Grace: misbehavingGrace}, limits(2*time.Second, 0))
						if r == nil || err == nil {
							t.Fatal(r, err)
						}
						if late := time.Since(begun) - 2*time.Second; late > misbehavingGrace+time.Second {
							t.Errorf("returned %v after the limit", late)
						}
						if r.Reason == procgroup.Exited && r.ExitCode != 3 && r.ExitCode != 128+int(syscall.SIGPIPE) { // after a writer has failed
							t.Errorf("%+v", r)
						}
						for _, wrong := range m.Off() {
							t.Error(wrong)
						}
					})
				})
			}
		}
	}
}
