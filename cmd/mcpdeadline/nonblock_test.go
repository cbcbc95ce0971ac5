//go:build unix

package main

import (
	"bufio"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

// SPEC 6.32: another process makes the standard streams of a server non-blocking, and its client reads late.
func TestNonBlockingStreams(t *testing.T) {
	t.Parallel()
	var in, out [2]int
	if err := syscall.Pipe(in[:]); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Pipe(out[:]); err != nil {
		t.Fatal(err)
	}
	files := make(map[int]*os.File)
	for _, fd := range append(in[:], out[:]...) {
		syscall.CloseOnExec(fd)
		files[fd] = os.NewFile(uintptr(fd), "pipe")
		defer files[fd].Close()
	}
	cmd := harness.Command("proxy", evilArgs(t)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = files[in[0]], files[out[1]], os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }() // where the test has failed
	send := func(line string) {
		if _, err := io.WriteString(files[in[1]], line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	lines := bufio.NewReader(files[out[0]])
	read := func() string {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%.200q, %v", line, err)
		}
		return line
	}
	hear := func(want string) {
		if line := read(); !strings.Contains(line, want) {
			t.Fatalf("%.200q", line)
		}
	}
	send(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":` + initialize + `}`)
	hear("serverInfo")
	for _, fd := range []int{in[0], out[1]} {
		if err := syscall.SetNonblock(fd, true); err != nil {
			t.Fatal(err)
		}
	}
	filled := 0
	for piece := make([]byte, 1<<10); len(piece) > 0; {
		n, err := syscall.Write(out[1], piece)
		if filled += max(n, 0); err != nil {
			piece = piece[:len(piece)/2]
		}
	}
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	send(`{"jsonrpc":"2.0","id":"first","method":"ping"}`)
	send(`{"jsonrpc":"2.0","id":"second","method":"tools/list"}`)

	if _, err := io.CopyN(io.Discard, lines, int64(filled)); err != nil {
		t.Fatal(err)
	}
	one, two := read(), read() // in any order
	if both := one + two; !strings.Contains(both, `"first"`) || !strings.Contains(both, `"second"`) {
		t.Fatalf("%.200q, %.200q", one, two)
	}
	send(`{"jsonrpc":"2.0","id":"third","method":"ping"}`) // a read has waited for it
	hear(`"third"`)
	files[in[1]].Close()
	files[in[0]].Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
