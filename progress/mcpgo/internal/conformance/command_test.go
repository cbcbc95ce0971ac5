package main

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 7.7: a command that was stopped leaves what it has printed, under a headline if that is
// anything.
func TestStoppedCommand(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	const stopped = "Tool exceeded wall-clock limit of 3s."
	for script, want := range map[string]string{
		"sleep 600":             stopped,
		"echo; sleep 600":       stopped,
		"echo begun; sleep 600": stopped + "\n\nPartial output:\nbegun\n",
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			var r mcp.CallToolRequest
			r.Params.Arguments = map[string]any{"command": "sh", "args": []string{"-c", script}}
			var texts []string
			_ = timeout.Run(t.Context(), func(ctx context.Context) error {
				res, err := runCommand(ctx, r)
				if err != nil || !res.IsError {
					t.Errorf("%+v, %v", res, err)
					return err
				}
				for _, c := range res.Content {
					texts = append(texts, mcp.GetTextFromContent(c))
				}
				return nil
			}, timeout.Config{Total: 3 * time.Second})
			if d := cmp.Diff([]string{want}, texts); d != "" {
				t.Error(d)
			}
		})
	}
}
