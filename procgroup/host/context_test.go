package host_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup/host"
)

// watchable skips a test on systems on which nothing can be watched.
func watchable(t *testing.T) {
	t.Helper()
	ctx, stop := host.ContextOf(t.Context(), os.Getpid())
	defer stop()
	if _, err := host.Of(ctx); errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
}

// child starts this program as a process that ends when its stdin does.
func child(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := harness.Command("child")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// done waits for the end of a context, and returns its cause.
func done(t *testing.T, ctx context.Context) error {
	t.Helper()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(30 * time.Second):
		t.Fatal("the context is not done")
		panic("unreachable")
	}
}

// Guarantee 1.
func TestNamed(t *testing.T) {
	watchable(t)
	cmd := child(t)
	ctx, stop := host.ContextOf(t.Context(), cmd.Process.Pid)
	defer stop()
	named, err := host.Of(ctx)
	if err != nil || named.Pid != cmd.Process.Pid || named.Name == "" {
		t.Errorf("Of = %+v, %v", named, err)
	}
	if ctx.Err() != nil {
		t.Fatal(context.Cause(ctx))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var ended *host.EndedError
	if err := done(t, ctx); !errors.As(err, &ended) {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]host.ProcessInfo{named, named}, []host.ProcessInfo{ended.Host, ended.Process}); diff != "" {
		t.Error(diff)
	}
	if again, err := host.Of(ctx); err != nil || again != named {
		t.Errorf("Of = %+v, %v after the end", again, err)
	}
}

// A host that is not there has ended.
func TestNamedAndGone(t *testing.T) {
	watchable(t)
	cmd := child(t)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	ctx, stop := host.ContextOf(t.Context(), cmd.Process.Pid)
	defer stop()
	gone := host.ProcessInfo{Pid: cmd.Process.Pid}
	var ended *host.EndedError
	if err := done(t, ctx); !errors.As(err, &ended) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&host.EndedError{Host: gone, Process: gone, ExitCode: -1}, ended); diff != "" {
		t.Error(diff)
	}
	if _, err := host.Of(ctx); err == nil {
		t.Error("Of reports a process that does not exist")
	}
}

func TestInvalidPID(t *testing.T) {
	for _, pid := range []int{0, -1} {
		ctx, stop := host.ContextOf(t.Context(), pid)
		defer stop()
		if err := done(t, ctx); !strings.Contains(err.Error(), "want the id of a process, above 0") {
			t.Error(err)
		}
	}
}

// Guarantee 5. stop, and the end of the parent, end the context, with their own cause, and the watch.
// (The end of the suite looks for goroutines.)
func TestStop(t *testing.T) {
	watchable(t)
	because := errors.New("because")
	parent, cancel := context.WithCancelCause(t.Context())
	byParent, stop := host.ContextOf(parent, os.Getpid())
	defer stop()
	ctx, stop := host.ContextOf(t.Context(), os.Getpid())
	stop()
	if err := done(t, ctx); err != context.Canceled {
		t.Error(err)
	}
	stop()
	cancel(because)
	if err := done(t, byParent); err != because {
		t.Error(err)
	}
	late, stop := host.ContextOf(parent, os.Getpid())
	defer stop()
	if err := done(t, late); err != because {
		t.Error(err)
	}
	if _, err := host.Of(late); err != because {
		t.Errorf("Of = %v for a context that was done at once", err)
	}
}

func TestOfAnotherContext(t *testing.T) {
	if _, err := host.Of(t.Context()); err == nil {
		t.Error("no error")
	}
}

func TestErrorText(t *testing.T) {
	node, sh := host.ProcessInfo{Pid: 7, Name: "node"}, host.ProcessInfo{Pid: 8}
	for _, tc := range []struct {
		err  *host.EndedError
		want string
	}{
		{&host.EndedError{Host: node, Process: node, ExitCode: -1}, "the host, node (7), has ended"},
		{&host.EndedError{Host: node, Process: node, ExitCode: 3}, "the host, node (7), has ended with exit code 3"},
		{&host.EndedError{Host: node, Process: node, Signal: os.Kill, ExitCode: -1}, "the host, node (7), was killed by a signal: " + os.Kill.String()},
		{&host.EndedError{Host: node, Process: sh, Signal: os.Interrupt, ExitCode: -1},
			"process 8, between the host, node (7), and this program, was killed by a signal: " + os.Interrupt.String()},
	} {
		if got := tc.err.Error(); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
}
