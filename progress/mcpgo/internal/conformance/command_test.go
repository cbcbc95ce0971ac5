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

// SPEC 7.7: a command that was stopped says so in its own words, with what it has printed: once, under
// a headline, where the tool's result has it, and otherwise with the exit code.
func TestStoppedCommand(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	const stopped = "sh process timed out after 3000ms.\n"
	for script, want := range map[string]string{
		"sleep 600":             stopped + "Exit code 124.\n",
		"echo; sleep 600":       stopped + "Exit code 124.\n\n",
		"echo begun; sleep 600": stopped + "\nPartial output:\nbegun\n",
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
