package mcpgo_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

type writeFunc func([]byte) (int, error)

func (f writeFunc) Write(p []byte) (int, error) { return f(p) }

// SPEC 3.24: a reader or a writer that blocks, panics or ends its goroutine ends neither the process nor the order in
// which Serve ends.
func TestServeOutlastsCode(t *testing.T) {
	for _, place := range []string{"in", "out"} {
		for how := range attacks(nil) {
			t.Run(place+" "+how, func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				attack := attacks(release)[how]
				called, hit := make(chan struct{}), make(chan struct{}, 10)
				s := server.NewMCPServer("test", "1")
				s.AddTool(mcp.NewTool("t"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					close(called)
					return mcp.NewToolResultText("done"), nil
				})
				mcpgo.Install(s, new(policy.Policy))
				lines := strings.NewReader(initialize + "\n" + `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}` + "\n")
				in := readFunc(func(p []byte) (int, error) {
					if n, err := lines.Read(p); err == nil {
						return n, nil
					}
					select {
					case <-called: // it has arrived
					case <-release:
						return 0, io.EOF
					}
					if place == "in" {
						hit <- struct{}{}
						attack()
					}
					<-release
					return 0, io.EOF
				})
				out := writeFunc(func(p []byte) (int, error) {
					if place == "out" {
						hit <- struct{}{}
						attack()
					}
					return len(p), nil
				})
				ctx, end := context.WithCancel(t.Context())
				defer end()
				served := make(chan error, 1)
				go func() { served <- mcpgo.Serve(ctx, server.NewStdioServer(s), in, out, 10*ms) }()
				within(t, hit, place)
				end()
				within(t, served, "the end")
			})
		}
	}
}

// SPEC 3.24, 11.3: a principal that cannot be had keeps no call from its answer, and is nobody's.
func TestPrincipalOutlastsCode(t *testing.T) {
	for how := range attacks(nil) {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				t.Cleanup(func() { close(release) })
				s := server.NewMCPServer("test", "1")
				s.AddTool(mcp.NewTool("t"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					return mcp.NewToolResultText("done"), nil
				})
				tasks := new(task.Tasks)
				t.Cleanup(func() { _ = tasks.Close() })
				mcpgo.Install(s, new(policy.Policy), mcpgo.WithTasks(tasks), mcpgo.WithPrincipal(func(context.Context) string {
					attacks(release)[how]()
					return ""
				}))
				write, read := aLine(t, s)
				write(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`)
				time.Sleep(time.Minute)
				all := read()
				if len(all) != 2 || all[0].Error != nil || all[1].Error != nil {
					t.Errorf("%s", all)
				}
			})
		})
	}
}
