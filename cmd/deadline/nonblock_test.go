//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

// newPipe makes a pipe whose ends are closed with the test.
func newPipe(t *testing.T) (r, w *os.File) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// takeOver does what another process may do: it makes the file non-blocking, and fills it. It returns how many bytes it
// wrote.
func takeOver(t *testing.T, fd int) (n int) {
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

func mustNotBlock(t *testing.T, fd int) {
	t.Helper()
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK == 0 {
		t.Errorf("the flags have been changed to %#x, %v", flags, err)
	}
}

// SPEC 6.32: output arrives whole, on either stream, although another process makes the stream non-blocking while the
// command runs and its reader is late.
func TestNonBlockingStream(t *testing.T) {
	t.Parallel()
	bin := ours(t)
	const first, rest = 60_000, 340_000
	for to, options := range map[string]string{"": "--idle 60 --alive=output,cpu", ">&2": "--idle 60"} {
		t.Run(options, func(t *testing.T) {
			t.Parallel()
			cmd, mark := prepare(t, bin, fmt.Sprintf("exec deadline %s 120 sh -c 'echo up >&3; read x; head -c %d /dev/zero %s; echo written >&3; read x; head -c %[4]d /dev/zero %[3]s'",
				options, first, to, rest))
			other, theirs := newPipe(t)
			fd := int(theirs.Fd()) // which has package os make it block, each time
			told, tell := newPipe(t)
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
			want := int64(takeOver(t, fd) + first + rest)
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
			mustNotBlock(t, fd)
			theirs.Close()
			if n := <-got; n != want {
				t.Errorf("%d bytes arrived of %d", n, want)
			}
			harness.None(t, mark)
		})
	}
}
