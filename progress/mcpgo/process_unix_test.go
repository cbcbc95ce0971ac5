//go:build unix

package mcpgo_test

import (
	"context"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 6.32: another process makes the standard streams of a server non-blocking, and its client reads late.
func TestNonBlockingStreams(t *testing.T) {
	t.Parallel()
	sdktest.NonBlocking(t, child())
}

// SPEC 3.22, with a real process and its streams: calls that run, and calls that wait for one of the 5 workers.
func TestAnswersAtShutdown(t *testing.T) {
	t.Parallel()
	sdktest.AnswersAtShutdown(t, child(), 5, 8)
}

// SPEC 3.11: when the client's process dies, the server's tools are stopped and it exits.
func TestClientCrash(t *testing.T) {
	t.Parallel()
	sdktest.Crash(t, child())
}

// SPEC 6.8: the message and the output of a command that was stopped reach the client.
func TestCommandsMessage(t *testing.T) {
	t.Parallel()
	const limit = 10 * time.Second // on a clock that stands still until the shell has said something
	for name, tc := range map[string]struct {
		opts   []procgroup.Option
		output bool // the tool returns it
		want   result
	}{
		"its limit": {[]procgroup.Option{procgroup.Limits{Total: limit}}, false,
			stopped("total", "10000 10000 0", "TLC process timed out after 10000ms.\nExit code 124.\n12 states\n")},
		"with output": {[]procgroup.Option{procgroup.Limits{Total: limit}}, true,
			stopped("total", "10000 10000 0", "TLC process timed out after 10000ms.", "12 states\n")},
		"what it wrote": {[]procgroup.Option{procgroup.Limits{Total: time.Minute}, procgroup.Capture{Limit: 6}}, false,
			result{Texts: []string{"TLC wrote more than 6 bytes.\nExit code 153.\n12 states\n"}, IsError: true, Outcome: "too_much_output 153 0 60000 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := mcpgo.Handler(func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				now := clock.NewMock()
				said := sync.OnceFunc(func() { go now.Add(limit) })
				r, err := procgroup.Run(ctx, exec.Command("sh", "-c", "echo 12 states; exec sleep 60"), append([]procgroup.Option{
					procgroup.WithOptions(timeout.WithName("TLC"), timeout.WithClock(now)), procgroup.Capture{Each: func(procgroup.Chunk) { said() }},
				}, tc.opts...)...)
				if tc.output {
					return mcp.NewToolResultText(r.Combined.String()), err
				}
				return nil, err
			}, nil)
			res, err := h(t.Context(), mcp.CallToolRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, view(t, res)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
