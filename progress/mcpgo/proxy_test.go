//go:build unix

package mcpgo_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
)

// noisy is a server that prints more than messages: a line, colours, a byte order mark, foreign JSON, and text
// without a newline before each answer.
const noisy = `
printf '\357\273\277Welcome!\n\033[32mready\033[0m\n{"level":"info"}\n'
while read -r line; do
	id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
	case $line in
	*'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"noisy","version":"1"}}' ;;
	*) result='{"content":[{"type":"text","text":"there"}]}' ;;
	esac
	[ -z "$id" ] || printf 'no JSON\nLoading... {"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done`

// SPEC 16.3: behind cmd/mcpdeadline, the client of mcp-go sees messages only.
func TestClientBehindProxy(t *testing.T) {
	t.Parallel()
	proxy := filepath.Join(t.TempDir(), "mcpdeadline")
	build := exec.Command("go", "build", "-ldflags=-w", "-o", proxy, ".")
	build.Dir = filepath.Join("..", "..", "cmd", "mcpdeadline")
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := client.NewStdioMCPClient(proxy, nil, "--", "sh", "-c", noisy)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = "2025-06-18"
	hello.Params.ClientInfo = mcp.Implementation{Name: "t", Version: "1"}
	if _, err := c.Initialize(ctx, hello); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var req mcp.CallToolRequest
		req.Params.Name = "x"
		res, err := c.CallTool(ctx, req)
		if err != nil || res.IsError || len(res.Content) != 1 {
			t.Fatalf("%+v, %v", res, err)
		}
	}
}
