//go:build linux

package procgroup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// hang prints "ready" and a part of a line, and hangs in a function with a name that is looked for.
func hang(a []string) int {
	fmt.Print(strings.Join(append([]string{"ready\nhalf"}, a...), " "))
	hangsHere()
	return 0
}

// hanging is in the stack of a program that prints or hangs.
const hanging = "procgroup_test.hang("

//go:noinline
func hangsHere() { time.Sleep(forever) }

// quit handles SIGQUIT: it prints the first argument, and as many megabytes as the second says, and ends.
func quit(a []string) int {
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGQUIT)
	fmt.Print("ready\n")
	<-c
	fmt.Print(a[0])
	line := []byte(strings.Repeat("x", 1<<20-1) + "\n")
	for range atoi(a[1]) {
		_, _ = os.Stdout.Write(line)
	}
	return 0
}

// checkStacks checks that a limit has stopped the command, that the stacks have all the texts, and that they are where
// they should be and nowhere else.
func checkStacks(t *testing.T, r *procgroup.Result, err error, texts ...string) {
	t.Helper()
	var stop *timeout.Error
	if r == nil {
		t.Fatal(err)
	}
	if !errors.As(err, &stop) || !errors.Is(err, timeout.ErrTotal) || r.ExitCode != 124 || r.Reason != procgroup.TotalTimeout {
		t.Fatalf("%v, %v, exit code %d", err, r.Reason, r.ExitCode)
	}
	for _, text := range texts {
		if !strings.Contains(r.Stacks.Text(), text) {
			t.Errorf("no %q in the stacks:\n%s", text, r.Stacks)
		}
		if !bytes.Contains(stop.Stack, []byte(text)) || !strings.Contains(fmt.Sprintf("%+v", err), text) {
			t.Errorf("no %q in the error:\n%+v", text, err)
		}
		if strings.Contains(r.Text(), text) || strings.Contains(r.Stdout.String()+r.Stderr.String(), text) {
			t.Errorf("%q in the output:\n%s", text, r.Text())
		}
	}
	if !strings.HasPrefix(string(stop.Stack), "PID ") {
		t.Errorf("no list of processes in the error:\n%s", stop.Stack)
	}
	if r.Combined.Total != r.Stdout.Total+r.Stderr.Total && !bytes.Equal(r.Combined.Bytes(), r.Stdout.Bytes()) {
		t.Errorf("%d bytes, and %d in the streams", r.Combined.Total, r.Stdout.Total+r.Stderr.Total)
	}
}

// SPEC 6.22, 6.24: a Go program writes its stacks. They are not part of the output, the
// outcome is still that of the limit, and the Finished hook and the log get them, too. Who is asked in which containment is
// for TestStackWriters of proctree.
func TestStacksOfGo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, output string
		opts         []procgroup.Option
	}{
		{"pipes", "ready\nhalf", nil},
		{"one pipe", "ready\nhalf", []procgroup.Option{procgroup.Capture{OnePipe: true}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var told []byte
			var log logBuffer
			hooks := timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) { told = s.Stack }}
			opts := append([]procgroup.Option{procgroup.Stop{Stacks: true, Grace: longLimit},
				procgroup.WithOptions(timeout.WithHooks(hooks), timeout.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))}, tt.opts...)
			r, err := atLimit(t, "half", command("hang"), opts...)
			checkStacks(t, r, err, "SIGQUIT: quit", hanging)
			checkSystem(t, r)
			if got := r.Stdout.String(); got != tt.output || r.Stderr.Total != 0 {
				t.Errorf("%q, %q", got, r.Stderr)
			}
			if !bytes.Contains(told, []byte(hanging)) || !strings.Contains(log.String(), hanging) {
				t.Errorf("the hook got\n%s\nand the log\n%s", told, log.String())
			}
		})
	}
}

// SPEC 6.22, 6.6: a program handles SIGQUIT itself. Its text without the first line of stacks is output, of which
// every byte is counted; with it, what is kept of the stacks is bounded.
func TestStacksOfEvil(t *testing.T) {
	t.Parallel()
	const ready, flood = int64(len("ready\n")), 20 << 20
	const none, header = "no stacks\n", "SIGQUIT: quit\nPC=0x1 m=0\n"
	for _, tt := range []struct {
		name, text     string
		output, stacks int64
	}{
		{"floods the output", none, ready + int64(len(none)) + flood, 0},
		{"floods the stacks", header, ready, int64(len(header)) + flood},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var all counter
			cmd := command("quit", tt.text, "20")
			cmd.Stdout = &all
			r, err := atLimit(t, "ready", cmd, procgroup.Stop{Stacks: true, Grace: longLimit})
			checkStacks(t, r, err)
			if r.Stdout.Total != tt.output || int64(all) != tt.output || r.Unwritten != 0 || len(r.Stdout.Bytes()) > 1<<20 || len(r.Text()) > 1<<20+100 {
				t.Errorf("%d bytes of output, want %d; the writer got %d; %d kept", r.Stdout.Total, tt.output, all, len(r.Stdout.Bytes()))
			}
			if kept := int64(len(r.Stacks.Bytes())); r.Stacks.Total != tt.stacks || kept > 256<<10 || r.Stacks.Total != r.Stacks.Dropped+kept {
				t.Errorf("%d bytes of stacks, want %d; %d dropped", r.Stacks.Total, tt.stacks, r.Stacks.Dropped)
			}
			var stop *timeout.Error
			if errors.As(err, &stop) && len(stop.Stack) > 68<<10 {
				t.Errorf("%d bytes in the error", len(stop.Stack))
			}
		})
	}
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// What it takes to recognise one process, by kind.
func BenchmarkStacksRecognise(b *testing.B) {
	for name, cmd := range map[string]*exec.Cmd{"other": exec.Command("sleep", "120"), "go": command("quit", "", "0")} {
		b.Run(name, func(b *testing.B) {
			harness.Start(b, cmd, map[string]string{"go": "ready\n"}[name])
			defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
			o, err := procgroup.Observe(context.Background(), cmd.Process, procgroup.Activity{})
			if err != nil {
				b.Fatal(err)
			}
			defer o.Stop()
			for b.Loop() {
				o.WriteStacks(func(int) bool { return false })
			}
		})
	}
}
