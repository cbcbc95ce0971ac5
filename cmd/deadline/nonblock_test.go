//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/internal/leftovers"
)

// share makes a pipe or a socket that a program gets as a standard stream, and its other end.
func share(t *testing.T, socket bool) (theirs, other *os.File) {
	var p [2]int
	syscall.ForkLock.RLock() // what starts meanwhile would inherit them
	var err error
	if socket {
		p, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	} else {
		err = unix.Pipe(p[:])
	}
	if err != nil {
		syscall.ForkLock.RUnlock()
		t.Fatal(err)
	}
	unix.CloseOnExec(p[0])
	unix.CloseOnExec(p[1])
	syscall.ForkLock.RUnlock()
	theirs, other = os.NewFile(uintptr(p[1]), "theirs"), os.NewFile(uintptr(p[0]), "other")
	t.Cleanup(func() { theirs.Close(); other.Close() })
	return theirs, other
}

// takeOver does what another process may do: it makes the file non-blocking, and fills it. It returns how many bytes it
// wrote.
func takeOver(t *testing.T, f *os.File) (n int) {
	fd := int(f.Fd())
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Error(err)
	}
	for piece := make([]byte, 1<<10); len(piece) > 0; {
		m, err := unix.Write(fd, piece)
		if n += max(m, 0); err != nil {
			piece = piece[:len(piece)/2]
		}
	}
	return n
}

func mustNotBlock(t *testing.T, f *os.File) {
	t.Helper()
	if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK == 0 {
		t.Errorf("the flags have been changed to %#x, %v", flags, err)
	}
}

// SPEC 6.32: output arrives whole, on either stream, although another process makes the stream non-blocking while the
// command runs and its reader is late.
func TestNonBlockingStream(t *testing.T) {
	t.Parallel()
	bin := ours(t)
	const first, rest = 60_000, 340_000
	for _, c := range []struct {
		name    string
		options string
		to      string // where the command writes
		socket  bool
	}{
		{"stdout", "--idle 60", "", false},
		{"stderr is a socket", "--idle 60", ">&2", true},
		{"by its work", "--idle 60 --alive=output,cpu", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd, mark := prepare(t, bin, fmt.Sprintf("exec deadline %s 120 sh -c 'echo up >&3; read x; head -c %d /dev/zero %s; echo written >&3; read x; head -c %[4]d /dev/zero %[3]s'",
				c.options, first, c.to, rest))
			theirs, other := share(t, c.socket)
			told, tell, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer told.Close()
			defer tell.Close()
			cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = theirs, theirs, []*os.File{tell}
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(told)
			hear := func(want string) {
				if line, err := lines.ReadString('\n'); line != want+"\n" {
					t.Fatalf("%q, %v", line, err)
				}
			}
			hear("up")
			want := int64(takeOver(t, theirs) + first + rest)
			io.WriteString(in, "\n")
			hear("written") // deadline has it, or the command's pipe
			got := make(chan int64)
			go func() {
				n, _ := io.CopyN(io.Discard, other, want)
				got <- n
			}()
			io.WriteString(in, "\n")
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v", err)
			}
			mustNotBlock(t, theirs)
			theirs.Close()
			if n := <-got; n != want {
				t.Errorf("%d bytes arrived of %d", n, want)
			}
			leftovers.None(t, mark)
		})
	}
}

// SPEC 6.32: what nobody reads is counted to the byte.
func TestNonBlockingStreamThatNobodyReads(t *testing.T) {
	t.Parallel()
	bin := ours(t)
	for _, socket := range []bool{false, true} {
		// A signal, because the time in which the output has no reader is not the command's.
		cmd, mark := prepare(t, bin, "exec deadline --idle 60 -k .5 120 sh -c 'echo up >&3; read x; head -c 40000 /dev/zero; echo written >&3; sleep 60; :'")
		theirs, other := share(t, socket)
		told, tell, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer told.Close()
		defer tell.Close()
		cmd.Stdout, cmd.ExtraFiles = theirs, []*os.File{tell}
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(told, make([]byte, len("up\n"))); err != nil {
			t.Fatal(err)
		}
		filled := takeOver(t, theirs)
		some := make([]byte, 20_000) // which makes room for a part
		if _, err := io.ReadFull(other, some); err != nil {
			t.Fatal(err)
		}
		io.WriteString(in, "\n")
		if _, err := io.ReadFull(told, make([]byte, len("written\n"))); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Process.Signal(unix.SIGTERM)
		said, _ := io.ReadAll(stderr)
		_ = cmd.Wait()
		theirs.Close()
		arrived, _ := io.Copy(io.Discard, other)
		arrived -= int64(filled - len(some))
		var lost int64
		if _, rest, found := bytes.Cut(said, []byte("lost ")); found {
			fmt.Sscan(string(rest), &lost)
		}
		if arrived+lost != 40_000 || lost == 0 {
			t.Errorf("%d bytes arrived of 40000, and it says %q", arrived, said)
		}
		leftovers.None(t, mark)
	}
}
