//go:build unix

package stdio_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
)

// pipe makes a pipe whose ends package os takes for blocking ones, and turns them.
func pipe(t *testing.T) (r, w *os.File) {
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		t.Fatal(err)
	}
	r, w = os.NewFile(uintptr(p[0]), "r"), os.NewFile(uintptr(p[1]), "w")
	t.Cleanup(func() { r.Close(); w.Close() })
	turn(t, r, true)
	turn(t, w, true)
	return r, w
}

func turn(t *testing.T, f *os.File, nonblocking bool) {
	if err := unix.SetNonblock(int(f.Fd()), nonblocking); err != nil {
		t.Error(err)
	}
}

// Guarantees 1 and 4 (SPEC 6.32): both ends in one process, which turn all the time.
func TestEverythingArrives(t *testing.T) {
	t.Parallel()
	r, w := pipe(t)
	in, out := stdio.New(r), stdio.New(w)
	const writers, lines = 4, 200
	line := func(i int) string { return strings.Repeat(string(rune('a'+i)), 5_000) + "\n" } // more than a pipe takes as a whole
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for range lines {
				if _, err := io.WriteString(out, line(i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	over, turned := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(turned)
		for on := false; ; on = !on {
			select {
			case <-over:
				turn(t, w, true)
				return
			default:
				turn(t, w, on)
				runtime.Gosched()
			}
		}
	}()
	go func() {
		all.Wait()
		close(over)
		<-turned
		if flags, err := unix.FcntlInt(w.Fd(), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK == 0 {
			t.Errorf("the flags have been changed to %#x, %v", flags, err)
		}
		out.Close()
	}()
	got, err := io.ReadAll(in)
	if err != nil {
		t.Error(err)
	}
	for i := range writers {
		if n := bytes.Count(got, []byte(line(i))); n != lines {
			t.Errorf("%d lines of %q arrived whole", n, line(i)[:1])
		}
	}
	if flags, err := unix.FcntlInt(r.Fd(), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK == 0 {
		t.Errorf("the flags have been changed to %#x, %v", flags, err)
	}
}

// Guarantee 2: a reader that has gone, in the middle of a write.
func TestFinalErrors(t *testing.T) {
	t.Parallel()
	r, w := pipe(t)
	out := stdio.New(w)
	go func() {
		_, _ = io.ReadFull(stdio.New(r), make([]byte, 100_000))
		r.Close()
	}()
	n, err := out.Write(make([]byte, 1_000_000))
	if n < 100_000 || n == 1_000_000 || !errors.Is(err, unix.EPIPE) {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := stdio.New(os.NewFile(^uintptr(0)>>1, "none")).Write([]byte("x")); err == nil {
		t.Error("no error of a descriptor that is not open")
	}
}

// Guarantee 3: Close ends what waits, and what has not begun to. A read that has found the end stays at it.
func TestClose(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(r, w *stdio.File) (int, error){
		"read":  func(r, _ *stdio.File) (int, error) { return r.Read(make([]byte, 1)) },
		"write": func(_, w *stdio.File) (int, error) { return w.Write(make([]byte, 1_000_000)) },
	} {
		for _, first := range []bool{false, true} {
			r, w := pipe(t)
			in, out := stdio.New(r), stdio.New(w)
			file := map[string]*stdio.File{"read": in, "write": out}[name]
			if first {
				file.Close()
			}
			result := make(chan error)
			for range 3 { // one waits for another
				go func() {
					_, err := do(in, out)
					result <- err
				}()
			}
			if !first {
				runtime.Gosched() // either way there is one end
				file.Close()
			}
			for range 3 {
				if err := <-result; !errors.Is(err, os.ErrClosed) {
					t.Errorf("%s, closed before %t: %v", name, first, err)
				}
			}
			if err := file.Close(); !errors.Is(err, os.ErrClosed) {
				t.Errorf("a second Close: %v", err)
			}
		}
	}
}

// A file that package os lets the runtime poll is as it was.
func TestPolledFile(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	in, out := stdio.New(r), stdio.New(w)
	result := make(chan error)
	go func() {
		_, err := in.Read(make([]byte, 1))
		result <- err
	}()
	in.Close()
	if err := <-result; !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
	out.Close()
}

// Guarantee 3 (SPEC 6.32): package os lets the runtime poll a file that does not block when it is made. If another
// process makes it block afterwards, what has begun then waits in a system call, and Close waits for none of it.
func TestCloseOfFileThatWasNonblocking(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(r, w *stdio.File) (int, error){
		"read":  func(r, _ *stdio.File) (int, error) { return r.Read(make([]byte, 1)) },
		"write": func(_, w *stdio.File) (int, error) { return w.Write(make([]byte, 1_000_000)) },
	} {
		a, b := pipe(t)
		turn(t, a, true)
		r, w := polled(t, a), polled(t, b)
		turn(t, a, false)
		turn(t, b, false)
		in, out := stdio.New(r), stdio.New(w)
		file := map[string]*stdio.File{"read": in, "write": out}[name]
		result := make(chan error, 1)
		go func() {
			_, err := do(in, out)
			result <- err
		}()
		if name == "write" { // the system call that has written a byte fills the pipe and waits
			if _, err := a.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		closed := make(chan error, 1)
		go func() { closed <- file.Close() }()
		select {
		case err := <-closed:
			if err != nil {
				t.Errorf("%s: Close: %v", name, err)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s: Close waits for a system call that blocks", name)
		}
		if _, err := do(in, out); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
		if err := file.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: a second Close: %v", name, err)
		}
		a.Close() // ends the write
		b.Close() // ends the read
		if name == "write" {
			r.Close()
		} else {
			w.Close()
		}
		<-result
	}
}

// polled returns another descriptor of the file, which does not block now.
func polled(t *testing.T, f *os.File) *os.File {
	fd, err := unix.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	unix.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), f.Name())
}
