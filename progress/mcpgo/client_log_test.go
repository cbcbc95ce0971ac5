package mcpgo_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 8.10: what a client logs names the tool and the server, and its advice is for the author of the client.
func TestClientLog(t *testing.T) {
	t.Parallel()
	each(t, links, func(t *testing.T, l link) {
		var log bytes.Buffer
		s := server.NewMCPServer("files", "1", server.WithToolCapabilities(false))
		s.AddTool(mcp.NewTool("build"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		mcpgo.Install(s, nil)
		limits := map[string]mcpgo.ClientLimits{"tools/call": {Timeout: 100 * time.Millisecond}}
		c := connect(t, mcpgo.Limit(l.open(t, s), mcpgo.ClientLimits{}, limits,
			mcpgo.WithRequestOptions(timeout.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))), l.modern)
		if _, err := c.CallTool(t.Context(), call{tool: "build"}.request()); err == nil {
			t.Error("no error")
		}
		for _, want := range []string{"tool=build method=tools/call server=files ", "No progress for 0.1s (idle timeout). The server has sent neither an answer nor progress: raise the client's limit"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%s\nwant %s", log.String(), want)
			}
		}
	})
}
