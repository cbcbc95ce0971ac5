//go:build linux

package procgroup_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A shared is a file that this process has inherited, as far as package os can see, and its other end.
type shared struct {
	*os.File // blocks when package os looks at it
	other    *os.File
}

// shares makes the kinds of files that a program has as its standard streams.
var shares = map[string]func(t *testing.T) (ours, other int){
	"pipe": func(t *testing.T) (int, int) {
		var p [2]int
		if err := unix.Pipe(p[:]); err != nil {
			t.Fatal(err)
		}
		return p[1], p[0]
	},
	"pipe to read": func(t *testing.T) (int, int) {
		var p [2]int
		if err := unix.Pipe(p[:]); err != nil {
			t.Fatal(err)
		}
		return p[0], p[1]
	},
	"socket": func(t *testing.T) (int, int) {
		p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		return p[0], p[1]
	},
	"terminal": func(t *testing.T) (int, int) {
		master, slave, err := pty.Open()
		if err != nil {
			t.Skip(err)
		}
		defer master.Close()
		defer slave.Close()
		state, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		state.Lflag &^= unix.ICANON | unix.ECHO
		state.Oflag &^= unix.OPOST
		if err := unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, state); err != nil {
			t.Fatal(err)
		}
		return dup(t, slave), dup(t, master)
	},
}

func dup(t *testing.T, f *os.File) int {
	fd, err := unix.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func share(t *testing.T, kind string) *shared {
	ours, other := shares[kind](t)
	unix.CloseOnExec(ours)
	unix.CloseOnExec(other)
	s := &shared{os.NewFile(uintptr(ours), kind), os.NewFile(uintptr(other), "other")}
	t.Cleanup(func() { s.File.Close(); s.other.Close() })
	return s
}

// turn makes the file non-blocking, or blocking, as another process would.
func (s *shared) turn(t *testing.T, nonblocking bool) {
	raw, err := s.SyscallConn()
	if err != nil {
		t.Error(err)
	}
	_ = raw.Control(func(fd uintptr) { err = unix.SetNonblock(int(fd), nonblocking) })
	if err != nil {
		t.Error(err)
	}
}

// mustBe checks that the file is still as turn has made it.
func (s *shared) mustBe(t *testing.T, nonblocking bool) {
	t.Helper()
	raw, err := s.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Control(func(fd uintptr) {
		if flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK != 0 != nonblocking {
			t.Errorf("the flags have been changed to %#x, %v", flags, err)
		}
	})
}

// fill fills the file, which is non-blocking, and returns what its reader will find before anything else.
func (s *shared) fill(t *testing.T) (n int) {
	raw, err := s.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	piece := make([]byte, 1<<10)
	_ = raw.Control(func(fd uintptr) {
		for len(piece) > 0 {
			m, err := unix.Write(int(fd), piece)
			if n += max(m, 0); err != nil {
				piece = piece[:len(piece)/2]
			}
		}
	})
	return n
}

// A writerOf is a writer of a user's that embeds a file.
type writerOf struct{ *os.File }

// SPEC 6.32: whichever file the caller's output goes to, and however it gets there, it arrives whole although another
// process makes the file non-blocking and its reader is late. (One that turns all the time is in package stdio.)
func TestOutputToNonBlockingFile(t *testing.T) {
	t.Parallel()
	const size = 400_000
	toStdout := func(c *exec.Cmd, f *os.File) []procgroup.Option { c.Stdout = f; return nil }
	for _, row := range []struct {
		name, kind string
		to         func(*exec.Cmd, *os.File) []procgroup.Option
	}{
		{"stdout", "pipe", toStdout},
		{"terminal", "terminal", toStdout},
		{"embedded", "socket", func(c *exec.Cmd, f *os.File) []procgroup.Option { c.Stdout = writerOf{f}; return nil }},
		{"a File", "terminal", func(c *exec.Cmd, f *os.File) []procgroup.Option { c.Stdout = stdio.New(f); return nil }},
		{"beside another", "pipe", func(c *exec.Cmd, f *os.File) []procgroup.Option {
			c.Stdout = io.MultiWriter(new(bytes.Buffer), stdio.New(f))
			return nil
		}},
		{"from a terminal", "terminal", func(c *exec.Cmd, f *os.File) []procgroup.Option {
			c.Stdout = f
			return []procgroup.Option{procgroup.Terminal{Rows: 24, Cols: 80}}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := share(t, row.kind)
			cmd := exec.Command("sh", "-c", "head -c 400000 /dev/zero | tr '\\0' x")
			opts := append(row.to(cmd, s.File), procgroup.Stop{Grace: hung})
			s.turn(t, true)
			before := s.fill(t)
			begun := make(chan struct{})
			var once sync.Once
			opts = append(opts, procgroup.Capture{Each: func(c procgroup.Chunk) {
				if len(c.Data) > 0 {
					once.Do(func() { close(begun) })
				}
			}})
			got := make(chan int64)
			go func() {
				<-begun
				n, _ := io.CopyN(io.Discard, s.other, int64(before+size))
				got <- n - int64(before)
			}()
			if _, err := procgroup.Run(t.Context(), cmd, opts...); err != nil {
				t.Error(err)
			} else if n := <-got; n != size {
				t.Errorf("%d bytes arrived of %d", n, size)
			}
			s.mustBe(t, true)
		})
	}
}

// SPEC 6.11, 6.32: a file that nobody reads keeps no command from ending, and what it did not take is counted exactly.
func TestOutputToNonBlockingFileThatNobodyReads(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"pipe", "socket", "terminal", "pipe from the start", "socket from the start"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			kind, polled := strings.CutSuffix(kind, " from the start")
			s := share(t, kind)
			s.turn(t, true)
			if polled { // package os lets the runtime poll a file that does not block when it is made
				again := os.NewFile(uintptr(dup(t, s.File)), kind)
				s.File.Close()
				s.File = again
			}
			before := int64(s.fill(t))
			cmd := exec.Command("head", "-c", "400000", "/dev/zero")
			cmd.Stdout = s.File
			// The command itself waits, or has ended, according to how much its own pipe holds.
			mock := clock.NewMock()
			r, err := procgroup.Run(context.Background(), cmd, procgroup.Stop{Grace: 100 * time.Millisecond},
				procgroup.Limits{Total: time.Hour}, procgroup.WithOptions(timeout.WithClock(mock)),
				procgroup.Capture{Each: func(procgroup.Chunk) { mock.Add(time.Hour) }})
			said := err
			if stop := (*timeout.Error)(nil); errors.As(err, &stop) {
				said = stop.Err // the limit has fired, since the command still waited
			}
			if said == nil || !strings.Contains(said.Error(), "not all output was accepted in time") {
				t.Errorf("%v: %v", err, said)
			}
			s.mustBe(t, true)
			s.File.Close() // nothing holds it
			arrived, _ := io.Copy(io.Discard, s.other)
			arrived -= before
			if r.Unwritten == 0 || arrived+r.Unwritten != r.Stdout.Total {
				t.Errorf("%d bytes arrived, and %d are reported missing of %d", arrived, r.Unwritten, r.Stdout.Total)
			}
		})
	}
}

// SPEC 6.32: an error of a writer that hides its file says what to do.
func TestWriterThatHidesNonBlockingFile(t *testing.T) {
	t.Parallel()
	s := share(t, "pipe")
	s.turn(t, true)
	s.fill(t)
	cmd := exec.Command("echo", "x")
	cmd.Stdout = io.MultiWriter(s.File)
	r, err := procgroup.Run(t.Context(), cmd)
	if !errors.Is(err, unix.EAGAIN) || !strings.Contains(err.Error(), "package stdio") || r.Unwritten != 2 {
		t.Errorf("%v, %d unwritten", err, r.Unwritten)
	}
}

// SPEC 6.32: input that this process reads for a command arrives whole, whatever the file is behind.
func TestInputFromNonBlockingFile(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, kind string
		late       bool // it becomes non-blocking when the command has begun
		from       func(*exec.Cmd, *os.File) []procgroup.Option
	}{
		{"hidden", "pipe to read", false, func(c *exec.Cmd, f *os.File) []procgroup.Option { c.Stdin = struct{ io.Reader }{f}; return nil }},
		{"embedded, late", "pipe to read", true, func(c *exec.Cmd, f *os.File) []procgroup.Option { c.Stdin = struct{ *os.File }{f}; return nil }},
		{"a File", "pipe to read", false, func(c *exec.Cmd, f *os.File) []procgroup.Option { c.Stdin = stdio.New(f); return nil }},
		{"typed, late", "pipe to read", true, typed},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := share(t, row.kind)
			cmd := exec.Command("sh", "-c", "stty -echo 2>/dev/null; echo up; read a; echo got $a; read b; echo got $b")
			said := make(chan string, 100)
			opts := append(row.from(cmd, s.File), procgroup.Capture{Each: procgroup.Lines(func(line string, _ bool) { said <- line })})
			if !row.late {
				s.turn(t, true)
			}
			p, err := procgroup.Start(context.Background(), cmd, opts...)
			if err != nil {
				t.Fatal(err)
			}
			says := func(want string) {
				t.Helper()
				select {
				case line := <-said:
					if line != want {
						t.Errorf("it says %q, want %q", line, want)
					}
				case <-time.After(time.Minute):
					_ = p.Signal(os.Kill)
					t.Fatalf("it has not said %q within a minute", want)
				}
			}
			says("up")
			s.turn(t, true) // a read that has begun does not notice it, and the next does
			io.WriteString(s.other, "one\n")
			says("got one")
			io.WriteString(s.other, "two\n")
			says("got two")
			if _, err := p.Wait(); err != nil {
				t.Error(err)
			}
			s.mustBe(t, true)
		})
	}
}

func typed(c *exec.Cmd, f *os.File) []procgroup.Option {
	c.Stdin = f
	return []procgroup.Option{procgroup.Terminal{Rows: 24, Cols: 80}}
}
