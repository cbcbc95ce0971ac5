package mcpgo_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/request"
)

// SPEC 8.7: tools/list is a phase with a limit of its own for each page, and is tried again with the rest.
func TestConnectListsTools(t *testing.T) {
	for _, tc := range []struct {
		name  string
		wait  time.Duration // of each of four pages: mcp-go has an empty last one
		first int           // pages that take twice as long
		tries int
		took  time.Duration
		err   string
	}{
		{"in time", 5*time.Second - 1, 0, 1, 4 * (5*time.Second - 1), ""},
		{"too late once", 4 * time.Second, 1, 2, 5*time.Second + 2*time.Second + 4*4*time.Second, ""},
		{"too late", 5*time.Second + 1, 0, 4, 4*5*time.Second + 14*time.Second, `connecting: tools/list: Maximum total timeout exceeded: 5s`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lists := 0
				s := server.NewMCPServer("test", "1", server.WithPaginationLimit(1), server.WithToolFilter(func(ctx context.Context, tools []mcp.Tool) []mcp.Tool {
					wait := tc.wait
					if lists++; lists <= tc.first {
						wait *= 2
					}
					select {
					case <-time.After(wait):
					case <-ctx.Done():
					}
					return tools
				}))
				for _, name := range []string{"a", "b", "c"} {
					s.AddTool(mcp.NewTool(name), hang)
				}
				tries, start := 0, time.Now()
				var names []string
				c, _, err := mcpgo.Connect(t.Context(), func() (*client.Client, error) {
					tries++
					return client.NewClient(mcpgo.Limit(transport.NewInProcessTransport(s), mcpgo.ClientLimits{Timeout: time.Second}, nil)), nil
				}, hello, &mcpgo.ConnectOptions{Tools: func(tools []mcp.Tool) {
					for _, tool := range tools {
						names = append(names, tool.Name)
					}
				}})
				if took := time.Since(start); tries != tc.tries || took != tc.took {
					t.Errorf("%d tries in %v, want %d in %v", tries, took, tc.tries, tc.took)
				}
				if tc.err != "" {
					if err == nil || err.Error() != tc.err || c != nil || names != nil {
						t.Errorf("%v, %v, want %s", err, names, tc.err)
					}
				} else {
					if diff := cmp.Diff([]string{"a", "b", "c"}, names); err != nil || diff != "" {
						t.Fatalf("%v %s", err, diff)
					}
					_ = c.Close()
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// SPEC 8.7: a server that could not be reached is tried again every 30 s, until the program says otherwise.
func TestConnectStanding(t *testing.T) {
	refused := errors.New("refused")
	for _, tc := range []struct {
		name  string
		again int // how often the program says to go on
		up    int // the try that succeeds
		want  []time.Duration
	}{
		{"the program gives up", 1, 99, []time.Duration{0, time.Second, 31 * time.Second, 32 * time.Second}},
		{"it comes up", 99, 4, []time.Duration{0, time.Second, 31 * time.Second, 32 * time.Second}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, failed := time.Now(), 0
				var got []time.Duration
				c, _, err := mcpgo.Connect(t.Context(), func() (*client.Client, error) {
					if got = append(got, time.Since(start)); len(got) < tc.up {
						return nil, refused
					}
					return client.NewInProcessClient(newServer())
				}, hello, &mcpgo.ConnectOptions{
					Backoff: request.Backoff{Retries: 1, First: time.Second},
					Failed:  func(error) bool { failed++; return failed <= tc.again },
				})
				if diff := cmp.Diff(tc.want, got); diff != "" || errors.Is(err, refused) != (tc.up == 99) {
					t.Errorf("%v %s", err, diff)
				}
				if c != nil {
					_ = c.Close()
				}
			})
		})
	}
}
