//go:build linux

package procgroup_test

import (
	"context"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A command is told from the tool that runs it.
func TestOperation(t *testing.T) {
	got := map[string]timeout.Operation{}
	defer timeout.Watch(timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) {
		if s.Tool == "tool" || s.Tool == "command" { // those of other tests run too
			got[s.Tool] = s.Operation
		}
	}})()
	err := timeout.Run(t.Context(), func(ctx context.Context) error {
		_, err := procgroup.Run(ctx, exec.Command("true"), procgroup.WithOptions(timeout.WithName("command")))
		return err
	}, timeout.WithName("tool"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]timeout.Operation{"tool": timeout.OperationTool, "command": timeout.OperationCommand}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
