//go:build unix

package mcpgo_test

import (
	"context"
	"github.com/benbjohnson/clock"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 6.8: the message and the output of a command that was stopped reach the client.
func TestCommandsMessage(t *testing.T) {
	t.Parallel()
	const limit = 10 * time.Second // on a clock that stands still until the shell has said something
	clocked := func() []procgroup.Option {
		now := clock.NewMock()
		said := sync.OnceFunc(func() { go now.Add(limit) })
		return []procgroup.Option{procgroup.WithOptions(timeout.WithName("TLC"), timeout.WithClock(now)), procgroup.WithLimits(timeout.Config{Total: limit}),
			procgroup.WithOutput(func(procgroup.Chunk) { said() })}
	}
	s := newServer()
	s.AddTool(mcp.NewTool("tlc"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		_, err := procgroup.Run(ctx, exec.Command("sh", "-c", "echo 12 states; exec sleep 60"), clocked()...)
		return nil, err
	})
	s.AddTool(mcp.NewTool("tlc with output"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		r, err := procgroup.Run(ctx, exec.Command("sh", "-c", "echo 12 states; exec sleep 60"), clocked()...)
		return mcp.NewToolResultText(r.Combined.String()), err
	})
	s.AddTool(mcp.NewTool("writes too much"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		_, err := procgroup.Run(ctx, exec.Command("sh", "-c", "echo 12 states; exec sleep 60"),
			procgroup.WithOptions(timeout.WithName("TLC")), procgroup.WithOutputLimit(6), procgroup.WithLimits(timeout.Config{Total: 30 * time.Second}))
		return nil, err
	})
	c := named("wrapped 2026")[0].connect(t, s)
	for tool, want := range map[string]result{
		"tlc":             stopped("total", "10000 10000 0", "TLC process timed out after 10000ms.\nExit code 124.\n12 states\n"),
		"tlc with output": stopped("total", "10000 10000 0", "TLC process timed out after 10000ms.", "12 states\n"),
		"writes too much": {Texts: []string{"TLC wrote more than 6 bytes.\nExit code 153.\n12 states\n"}, IsError: true, Outcome: "too_much_output 153 0 30000 0"},
	} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			res, err := c.CallTool(soon(t), call{tool: tool}.request())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, view(t, res)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
