//go:build linux

package procgroup_test

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

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
