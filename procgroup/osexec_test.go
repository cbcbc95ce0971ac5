//go:build linux

package procgroup_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A Cmd that os/exec refuses is refused with the same error, which only os/exec itself can
// make.

// A variable with a NUL is refused, and not dropped: the command would run without it.
func TestNULInTheEnvironment(t *testing.T) {
	withNUL := func(cmd *exec.Cmd) *exec.Cmd {
		cmd.Env = append(cmd.Environ(), "SECRET=a\x00b")
		return cmd
	}
	want := withNUL(exec.Command("true")).Run()
	if want == nil {
		t.Fatal("os/exec accepts it")
	}
	eachContainment(t, func(t *testing.T, containment procgroup.Option) {
		cmd := withNUL(exec.Command("true"))
		if _, err := procgroup.Run(t.Context(), cmd, containment); err == nil || err.Error() != want.Error() {
			t.Errorf("Run: %v, want %v", err, want)
		}
	})
	for _, c := range []procgroup.Containment{procgroup.Group, procgroup.Descendants} {
		cmd := withNUL(exec.CommandContext(t.Context(), "true"))
		procgroup.Attach(cmd, procgroup.WithContainment(c))
		if err := cmd.Run(); err == nil || err.Error() != want.Error() {
			t.Errorf("Attach, %v: %v, want %v", c, err, want)
		}
	}
}

// A command that is none, and one whose start was tried before, are refused as by os/exec.
func TestStartRefusesAsOSExec(t *testing.T) {
	nowhere := func() *exec.Cmd {
		cmd := exec.Command("true")
		cmd.Dir = "/no/such/directory"
		return cmd
	}
	for _, tt := range []struct {
		name   string
		make   func() *exec.Cmd
		before func(*exec.Cmd)
	}{
		{"zero", func() *exec.Cmd { return new(exec.Cmd) }, nil},
		{"failed", func() *exec.Cmd { return exec.Command("/no/such/command") }, func(cmd *exec.Cmd) {
			_, _ = procgroup.Start(context.Background(), cmd)
		}},
		{"no directory", nowhere, func(cmd *exec.Cmd) { _, _ = procgroup.Start(context.Background(), cmd) }},
		{"failed, then mended", nowhere, func(cmd *exec.Cmd) {
			_, _ = procgroup.Start(context.Background(), cmd)
			cmd.Dir = ""
		}},
		{"tried by os/exec", nowhere, func(cmd *exec.Cmd) { _ = cmd.Start() }},
		{"ended", func() *exec.Cmd { return exec.Command("true") }, func(cmd *exec.Cmd) {
			if _, err := procgroup.Run(context.Background(), cmd); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plain, ours := tt.make(), tt.make()
			if tt.before != nil {
				if plain.Start() == nil {
					_ = plain.Wait()
				}
				tt.before(ours)
			}
			want := plain.Start()
			_, err := procgroup.Start(t.Context(), ours)
			if want == nil || err == nil || err.Error() != want.Error() {
				t.Errorf("%v, want %v", err, want)
			}
			if tt.before == nil || ours.Process != nil {
				return
			}
			// The other way round, too: os/exec refuses what was tried here.
			if err := ours.Start(); err == nil || err.Error() != want.Error() {
				t.Errorf("os/exec after that: %v, want %v", err, want)
			}
		})
	}
}

// outOfOrder writes to both streams in turns.
const outOfOrder = "echo first >&2; echo second; echo third >&2"

const inOrder = "first\nsecond\nthird\n"

// SPEC 6.25: one writer for both streams gets them in the order of writing.
func TestOneWriterForBothStreams(t *testing.T) {
	for i := range 100 {
		var both bytes.Buffer // not safe for concurrent use: the race detector looks
		cmd := exec.Command("sh", "-c", outOfOrder)
		cmd.Stdout, cmd.Stderr = &both, &both
		r, err := within(t, time.Second, cmd)
		check(t, r, err, want{})
		if both.String() != inOrder || r.Combined.String() != inOrder || r.Stdout.String() != inOrder || r.Stderr.Total != 0 {
			t.Fatalf("run %d: %q, kept %q, %q, %q", i, &both, r.Combined, r.Stdout, r.Stderr)
		}
	}
	// A type that cannot be compared has two pipes, as with os/exec.
	cmd := exec.Command("sh", "-c", "echo out; echo err >&2")
	writer := opaqueWriter{func([]byte) {}}
	cmd.Stdout, cmd.Stderr = writer, writer
	r, err := within(t, time.Second, cmd)
	check(t, r, err, want{})
	if r.Stdout.String() != "out\n" || r.Stderr.String() != "err\n" {
		t.Errorf("%q, %q", r.Stdout, r.Stderr)
	}
}

// An opaqueWriter cannot be compared.
type opaqueWriter struct{ fn func([]byte) }

func (w opaqueWriter) Write(p []byte) (int, error) { w.fn(p); return len(p), nil }

// SPEC 6.25: with WithOnePipe the order is that of writing, whatever the writers.
func TestOnePipe(t *testing.T) {
	for i := range 100 {
		var stdout bytes.Buffer
		var chunks strings.Builder
		var ends [2]int
		cmd := exec.Command("sh", "-c", outOfOrder)
		if i%2 == 0 {
			cmd.Stdout = &stdout
		}
		r, err := within(t, time.Second, cmd, procgroup.WithOnePipe(), procgroup.WithOutput(func(c procgroup.Chunk) {
			chunks.Write(c.Data)
			if c.Last {
				ends[stream(c)]++
			}
			if c.Stderr && len(c.Data) > 0 {
				t.Errorf("%q on stderr", c.Data)
			}
		}))
		check(t, r, err, want{})
		if r.Combined.String() != inOrder || r.Stdout.String() != inOrder || chunks.String() != inOrder || r.Stderr.Total != 0 {
			t.Fatalf("run %d: %q, %q, %q, %q", i, r.Combined, r.Stdout, chunks.String(), r.Stderr)
		}
		if ends != [2]int{1, 1} {
			t.Errorf("the callback got %v ends", ends)
		}
		if i%2 == 0 && stdout.String() != inOrder {
			t.Errorf("cmd.Stdout got %q", &stdout)
		}
	}
}

// One pipe cannot serve two writers.
func TestOnePipeForTwoWriters(t *testing.T) {
	for name, set := range map[string]func(*exec.Cmd){
		"two":         func(cmd *exec.Cmd) { cmd.Stdout, cmd.Stderr = new(bytes.Buffer), new(bytes.Buffer) },
		"stderr only": func(cmd *exec.Cmd) { cmd.Stderr = new(bytes.Buffer) },
	} {
		cmd := exec.Command("true")
		set(cmd)
		_, err := procgroup.Run(t.Context(), cmd, procgroup.WithOnePipe())
		if wrong := (*timeout.ConfigError)(nil); !errors.As(err, &wrong) || wrong.Key != "WithOnePipe" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// SPEC 6.26: a command whose writer fails gets SIGPIPE, as under os/exec, and what it would
// write then is no heartbeat.
func TestFailedWriterEndsTheCommand(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	failing := func() io.Writer { return &failingWriter{after: 2, err: broken} }
	const chatty = `while :; do echo x; sleep 0.02; done`
	for _, tt := range []struct {
		name   string
		script string
		set    func(*exec.Cmd)
		code   int
		reason procgroup.Reason
	}{
		{"stdout", chatty, func(cmd *exec.Cmd) { cmd.Stdout = failing() }, 141, procgroup.Exited},
		{"stderr", "exec >&2; " + chatty, func(cmd *exec.Cmd) { cmd.Stderr = failing() }, 141, procgroup.Exited},
		{"both", chatty, func(cmd *exec.Cmd) { cmd.Stdout = failing(); cmd.Stderr = cmd.Stdout }, 141, procgroup.Exited},
		{"SIGPIPE ignored", "trap '' PIPE; " + chatty + " 2>/dev/null", func(cmd *exec.Cmd) { cmd.Stdout = failing() }, 124, procgroup.IdleTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("sh", "-c", tt.script)
			tt.set(cmd)
			r, err := within(t, longLimit, cmd, procgroup.WithLimits(timeout.Config{Idle: 15 * time.Second, Total: longLimit}), procgroup.WithKillGrace(-1))
			if r == nil || r.ExitCode != tt.code || r.Reason != tt.reason || timeout.ExitCode(err) != tt.code {
				t.Fatalf("%v, %+v", err, r)
			}
			if !errors.Is(err, broken) {
				t.Errorf("%v, want %v in it", err, broken)
			}
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
				t.Errorf("%v, want the command's own end in it", err)
			}
			// The output until then is there, and nothing after it.
			if n := r.Combined.Total; n < 2 || n != int64(len(r.Combined.String())) || r.Unwritten != n-2 || r.PipeHeld {
				t.Errorf("%d bytes, %d not written, held %v", n, r.Unwritten, r.PipeHeld)
			}
		})
	}
}

// A failingWriter fails after some bytes.
type failingWriter struct {
	after int
	err   error
}

func (w *failingWriter) Write(p []byte) (int, error) {
	n := min(w.after, len(p))
	w.after -= n
	if n < len(p) {
		return n, w.err
	}
	return n, nil
}
