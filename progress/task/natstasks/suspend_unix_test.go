//go:build unix

package natstasks_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/task/natstasks"
)

// SPEC 13.3: a process that was suspended for longer than its lease finds its task failed; its tool
// is aborted, with a cause that says so, and what that returns is dropped.
func TestSuspended(t *testing.T) {
	t.Parallel()
	url := startServer(t, -1, t.TempDir()).ClientURL()
	asks := task.New(task.WithStore(open(t, url, natstasks.WithLease(lease))))
	p := startProcess(t, "worker", "WORKER_URL="+url)
	id := p.line(t)
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	failed := func() bool {
		var err error
		if got, err = ask(t.Context(), asks, "tasks/get", id); err != nil {
			t.Error(err)
		}
		return got["status"] == string(task.Failed)
	}
	eventually(t, 2*lease+slack, failed, func() string { return fmt.Sprint("still ", got) })
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if line := p.line(t); line != "lost true cancelled false" {
		t.Error(line)
	}
	p.stdin.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if !failed() {
		t.Errorf("after it woke: %v", got)
	}
}
