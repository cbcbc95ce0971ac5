package mcpgo_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
)

// A tap shows what a client writes to a server of mcp-go, which keeps a cancellation for itself.
type tap struct {
	io.WriteCloser
	lines chan []byte
}

func (t *tap) Write(p []byte) (int, error) {
	t.lines <- bytes.Clone(p)
	return t.WriteCloser.Write(p)
}

// SPEC 8.6: a server of mcp-go gets the reason why a request was given up, also if it is mcp-go's
// client that cancels it.
func TestCancelReason(t *testing.T) {
	t.Parallel()
	errStop := errors.New("the user pressed Stop")
	for _, tc := range []struct {
		name   string
		limits mcpgo.ClientLimits
		stop   bool
		want   string
	}{
		{"limit", mcpgo.ClientLimits{Timeout: time.Second, ResetOnProgress: true}, false, "timeout of 1 s without progress"},
		{"person", mcpgo.ClientLimits{Timeout: slack}, true, "cancelled: the user pressed Stop"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			lines := make(chan []byte, 100)
			each(t, []link{
				{"stdio 2025", false, func(t *testing.T, s *server.MCPServer) transport.Interface {
					in, out := pipes(t, s)
					return transport.NewIO(in, &tap{out, lines}, io.NopCloser(nil))
				}},
				{"http 2025", false, openHandler(func(h http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if r.Method == http.MethodPost {
							body, _ := io.ReadAll(r.Body)
							lines <- body
							r.Body = io.NopCloser(bytes.NewReader(body))
						}
						h.ServeHTTP(w, r)
					})
				}, nil)},
			}, func(t *testing.T, l link) {
				s := server.NewMCPServer("test", "1")
				begun := make(chan struct{})
				s.AddTool(mcp.NewTool("hang"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					close(begun)
					<-ctx.Done()
					return nil, ctx.Err()
				})
				c := l.limited(t, s, tc.limits)
				ctx, cancel := context.WithCancelCause(soon(t))
				defer cancel(nil)
				if tc.stop {
					go func() { <-begun; cancel(errStop) }()
				}
				if _, err := c.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "hang"}}); err == nil {
					t.Error("no error")
				}
				for late := time.After(slack); ; {
					select {
					case line := <-lines:
						if !bytes.Contains(line, []byte("notifications/cancelled")) {
							continue
						}
						if !bytes.Contains(line, []byte(`"reason":"`+tc.want+`"`)) {
							t.Errorf("%s, want %q", line, tc.want)
						}
					case <-late:
						t.Error("the server was not told")
					}
					return
				}
			})
		})
	}
}
