//go:build unix

package mcpgo_test

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 6.8: the message and the output of a command that was stopped reach the client.
func TestCommandsMessage(t *testing.T) {
	s := newServer()
	s.AddTool(mcp.NewTool("tlc"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		_, err := procgroup.Run(ctx, exec.Command("sh", "-c", "echo 12 states; exec sleep 60"),
			procgroup.WithOptions(timeout.WithName("TLC")), procgroup.WithLimits(timeout.Config{Total: 500 * time.Millisecond}))
		return nil, err
	})
	s.AddTool(mcp.NewTool("tlc with output"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		r, err := procgroup.Run(ctx, exec.Command("sh", "-c", "echo 12 states; exec sleep 60"),
			procgroup.WithOptions(timeout.WithName("TLC")), procgroup.WithLimits(timeout.Config{Total: 500 * time.Millisecond}))
		return mcp.NewToolResultText(r.Combined.String()), err
	})
	s.AddTool(mcp.NewTool("writes too much"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		_, err := procgroup.Run(ctx, exec.Command("sh", "-c", "echo 12 states; exec sleep 60"),
			procgroup.WithOptions(timeout.WithName("TLC")), procgroup.WithOutputLimit(6), procgroup.WithLimits(timeout.Config{Total: 30 * time.Second}))
		return nil, err
	})
	c := named("serve 2025")[0].connect(t, s)
	res, err := c.CallTool(soon(t), call{tool: "tlc"}.request())
	if err != nil {
		t.Fatal(err)
	}
	want := stopped("total", "500 500 0", "TLC process timed out after 500ms.\nExit code 124.\n12 states\n")
	if diff := cmp.Diff(want, view(t, res)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if res, err = c.CallTool(soon(t), call{tool: "tlc with output"}.request()); err != nil {
		t.Fatal(err)
	}
	want = stopped("total", "500 500 0", "TLC process timed out after 500ms.", "12 states\n")
	if diff := cmp.Diff(want, view(t, res)); diff != "" {
		t.Errorf("with output of its own (-want +got):\n%s", diff)
	}
	if res, err = c.CallTool(soon(t), call{tool: "writes too much"}.request()); err != nil {
		t.Fatal(err)
	}
	want = result{Texts: []string{"TLC wrote more than 6 bytes.\nExit code 153.\n12 states\n"}, IsError: true, Outcome: "too_much_output 153 0 30000 0"}
	if diff := cmp.Diff(want, view(t, res)); diff != "" {
		t.Errorf("stopped for what it wrote (-want +got):\n%s", diff)
	}
}
