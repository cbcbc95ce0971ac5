//go:build linux

package procgroup_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup"
)

// The end of the context ends the whole tree, and Wait waits for nobody who holds its streams.
func TestAttach(t *testing.T) {
	t.Parallel()
	for _, grace := range []time.Duration{-1, 100 * time.Millisecond} {
		cmd0, pids := family(t, "tree", "hold", "deaf")
		ctx, cancel := context.WithCancel(context.Background())
		cmd := exec.CommandContext(ctx, cmd0.Path, cmd0.Args[1:]...)
		cmd.Env = cmd0.Env
		procgroup.Attach(cmd, procgroup.Stop{Grace: grace})
		harness.Start(t, cmd, "ready\n")
		harness.Eventually(t, "the tree", func() bool { return len(pids()) == 5 })
		cancel()
		err := cmd.Wait()
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Errorf("error %v", err)
		}
		harness.Eventually(t, "the tree to die", func() bool { return !slices.ContainsFunc(pids(), alive) })
	}
}

// A command that ends by itself is as without Attach.
func TestAttachEndsByItself(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, c := range []procgroup.Containment{"", procgroup.Group, procgroup.Descendants} {
		cmd := exec.CommandContext(ctx, "echo", "hello")
		procgroup.Attach(cmd, c)
		if out, err := cmd.Output(); err != nil || string(out) != "hello\n" {
			t.Errorf("%q, %v", out, err)
		}
	}
}

// What Attach cannot do is an error of Start.
func TestAttachRefuses(t *testing.T) {
	cmd := exec.Command("true")
	procgroup.Attach(cmd)
	if err := cmd.Run(); err == nil {
		t.Error("a command without a context was accepted")
	}
	cmd = exec.CommandContext(context.Background(), "true")
	procgroup.Attach(cmd, procgroup.Cgroup)
	if err := cmd.Run(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("error %v", err)
	}
	cmd = exec.CommandContext(context.Background(), "true")
	cmd.Dir = "/no/such/directory"
	procgroup.Attach(cmd)
	if err := cmd.Run(); err == nil || err.Error() != "chdir /no/such/directory: no such file or directory" {
		t.Errorf("error %v", err)
	}
	cmd = exec.CommandContext(context.Background(), "no-such-command-anywhere")
	procgroup.Attach(cmd)
	if err := cmd.Run(); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("error %v", err)
	}
}

// An environment that is assigned after Attach takes away the mark by which descendants are
// found, and Cancel says so; one that is appended to does not.
func TestAttachEnvironment(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*exec.Cmd)
		says   string
	}{
		"appended": {change: func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "A=b") }},
		"assigned": {change: func(cmd *exec.Cmd) { cmd.Env = []string{"A=b"} }, says: "cmd.Env was assigned after Attach"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			cmd := exec.CommandContext(ctx, "sh", "-c", `trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done`)
			procgroup.Attach(cmd, procgroup.Stop{Grace: time.Minute})
			tt.change(cmd)
			harness.Start(t, cmd, "ready\n")
			cancel()
			err := cmd.Wait()
			if tt.says == "" && !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want that of the context", err)
			}
			if tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
				t.Errorf("error %v, want %q in it", err, tt.says)
			}
		})
	}
}

// runModeAttach runs a shell command, ends its context when it writes to descriptor 3, and ends when it has ended.
func runModeAttach(args []string) int {
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", args[0])
	cmd.Stdout, cmd.ExtraFiles = os.Stdout, []*os.File{w}
	procgroup.Attach(cmd, procgroup.Group, procgroup.Stop{Grace: time.Hour})
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	_, _ = r.Read(make([]byte, 1))
	cancel()
	_ = cmd.Wait()
	return 0
}

// SPEC 6.1: a program that ends within the grace kills nothing at its end.
func TestAttachOfAProgramThatEnds(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "end")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	program := command("attach", `(trap "echo asked; read x <`+fifo+`; echo ended; exit" TERM; echo >&3; while :; do sleep 0.01; done) & wait`)
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	program.Stdout = w
	if err := program.Run(); err != nil {
		t.Error(err)
	}
	w.Close()
	end, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	_, _ = end.WriteString("\n")
	_ = out.SetReadDeadline(time.Now().Add(time.Minute))
	if said, err := io.ReadAll(out); err != nil || string(said) != "asked\nended\n" {
		t.Errorf("%q, %v", said, err)
	}
}
