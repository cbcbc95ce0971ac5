package procgroup_test

import (
	"errors"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/procgroup"
)

// whenReady starts a script in a terminal, and calls do when the script has said that it is ready.
func whenReady(t *testing.T, cmd *exec.Cmd, do func(p *procgroup.Process)) (*procgroup.Result, error) {
	t.Helper()
	ready := make(chan struct{})
	var once sync.Once
	p := startOnTerminal(t, cmd, procgroup.Capture{Each: procgroup.Lines(func(line string, _ bool) {
		if line == "ready" {
			once.Do(func() { close(ready) })
		}
	})})
	select {
	case <-ready:
		do(p)
	case <-time.After(time.Minute):
		t.Error("the command is not ready after a minute")
	}
	return p.Wait()
}

// SPEC 6.31: of what a reader gives, nothing is typed that would be lost, and output is not stopped for good. The error
// says so.
func TestTypingError(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, input, want string
		refused           *procgroup.TypingError
	}{
		{"a line that is too long", "a\n" + strings.Repeat("x", 5000) + "\nb\n", "a\n" + strings.Repeat("x", 4095), &procgroup.TypingError{Offset: 4097, Byte: 'x', Effect: "it keeps only 4095 bytes of a line"}},
		{"output that is stopped", "a\n\x13b\n", "a\nb\n", &procgroup.TypingError{Offset: 5, Byte: 0x13, Effect: "it stops the output"}},
		{"output that is stopped for a time", "a\n\x13b\n\x11c\n", "a\nb\nc\n", nil},
		{"keys", "ab\x7fc\nd\x15e\n", "ac\ne\n", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("sh", "-c", "stty -echo; echo ready; exec cat")
			in, w := io.Pipe()
			cmd.Stdin = in
			r, err := whenReady(t, cmd, func(*procgroup.Process) {
				_, _ = io.WriteString(w, tt.input)
				w.Close()
			})
			var refused *procgroup.TypingError
			if !errors.As(err, &refused) && err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(tt.refused, refused); diff != "" {
				t.Error(diff)
			}
			if _, got, _ := strings.Cut(strings.ReplaceAll(r.Stdout.String(), "\r\n", "\n"), "ready\n"); got != tt.want {
				t.Errorf("output %.100q, want %.100q", got, tt.want)
			}
		})
	}
}

// SPEC 6.19, 6.31: an interrupt is the byte that interrupts at this moment; where there is none, a signal is sent.
func TestInterruptOfATerminal(t *testing.T) {
	t.Parallel()
	for _, stty := range []string{"sane", "intr ^X", "intr undef", "-isig"} {
		t.Run(stty, func(t *testing.T) {
			t.Parallel()
			script := "trap 'echo interrupted; exit 0' INT; stty " + stty + " -echo; echo ready; while :; do sleep 0.01; done"
			want := "interrupted\r\n"
			if stty == "-isig" { // a key
				script = "stty " + stty + " -echo; echo ready; read x; echo $x | od -An -tx1"
				want = " 03 0a\r\n"
			}
			cmd := exec.Command("sh", "-c", script)
			var in io.WriteCloser
			cmd.Stdin, in = io.Pipe()
			defer in.Close()
			r, err := whenReady(t, cmd, func(p *procgroup.Process) {
				if err := p.Interrupt(); err != nil {
					t.Error(err)
				}
				if stty == "-isig" {
					_, _ = io.WriteString(in, "\n")
				}
			})
			if _, got, _ := strings.Cut(r.Stdout.String(), "ready\r\n"); err != nil || got != want {
				t.Errorf("%v, output %q, want %q", err, got, want)
			}
		})
	}
}
