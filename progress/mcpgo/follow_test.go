package mcpgo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
)

// tasksOver are the links over which there are tasks, of 2026-07-28.
var tasksOver = []string{"serve 2026", "wrapped 2026"}

// CallTool just takes longer, over every transport that has tasks, and is what it was elsewhere.
func TestFollowTasks(t *testing.T) {
	t.Parallel()
	for _, l := range links {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			s := newTaskServer(t, mcpgo.WithTasks(newTasks(t)))
			c := connect(t, mcpgo.Limit(mcpgo.FollowTasks(l.open(t, s.MCPServer)), mcpgo.ClientLimits{}, nil), l.modern)
			for _, tool := range []string{"held", "now", "plain"} {
				time.AfterFunc(150*ms, func() { s.release <- true })
				res, err := c.CallTool(soon(t), call{tool: tool, args: map[string]any{"what": tool}}.request())
				if err != nil || !cmp.Equal([]string{"done " + tool}, view(t, res).Texts) {
					t.Errorf("%v %v", res, err)
				}
			}
			res, err := c.CallTool(soon(t), call{tool: "fails"}.request())
			if err != nil || !res.IsError || !cmp.Equal([]string{"no such file"}, view(t, res).Texts) {
				t.Errorf("fails: %v %v", res, err)
			}
			if _, err = c.CallTool(soon(t), call{tool: "breaks"}.request()); err == nil || !strings.Contains(err.Error(), errOwn.Error()) {
				t.Errorf("breaks: %v", err)
			}
			if res, err = c.CallTool(soon(t), call{tool: "stopped"}.request()); err != nil || view(t, res).Outcome != "total 124 100 100 0" {
				t.Errorf("stopped: %v %v", res, err)
			}
		})
	}
}

// polled is a transport that calls f before it asks for a task.
func polled(t *testing.T, tr transport.Interface, f func()) transport.Interface {
	t.Helper()
	switch tr := tr.(type) {
	case *transport.Stdio:
		return polledStdio{tr, f}
	case *transport.StreamableHTTP:
		return polledHTTP{tr, f}
	}
	t.Fatalf("%T", tr)
	return nil
}

type polledStdio struct {
	*transport.Stdio
	f func()
}

func (p polledStdio) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	if r.Method == "tasks/get" {
		p.f()
	}
	return p.Stdio.SendRequest(ctx, r)
}

type polledHTTP struct {
	*transport.StreamableHTTP
	f func()
}

func (p polledHTTP) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	if r.Method == "tasks/get" {
		p.f()
	}
	return p.StreamableHTTP.SendRequest(ctx, r)
}

// A caller that gives up cancels the task, whether by its context or by a limit. It has heard of
// the task by then: of one that it does not know there is nothing to cancel.
func TestFollowTasksCancels(t *testing.T) {
	t.Parallel()
	for _, l := range named(tasksOver...) {
		for _, limited := range []bool{false, true} {
			t.Run(fmt.Sprint(l.name, " limited ", limited), func(t *testing.T) {
				t.Parallel()
				// A limit that comes before the handle, as on a busy machine, is tried again, longer.
				for total := time.Second; ; total *= 2 {
					s := newTaskServer(t, mcpgo.WithTasks(newTasks(t)))
					ctx, cancel := context.WithCancel(t.Context())
					tool := make(chan context.Context, 1)
					known := sync.OnceFunc(func() {
						tool <- <-s.started
						if !limited {
							cancel()
						}
					})
					limits := mcpgo.ClientLimits{}
					if limited {
						limits.MaxTotal = total
					}
					c := connect(t, mcpgo.Limit(mcpgo.FollowTasks(polled(t, l.open(t, s.MCPServer), known)), mcpgo.ClientLimits{},
						map[string]mcpgo.ClientLimits{"tools/call": limits}), true)
					_, err := c.CallTool(ctx, call{tool: "now"}.request())
					cancel()
					if limited {
						requestTimeout(t, err, "tools/call")
					} else if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					if limited && len(tool) == 0 && total < slack {
						continue
					}
					isCancelled(t, within(t, tool, "the start"))
					return
				}
			})
		}
	}
}

// The status messages of the task are progress of the call, which renews its limit.
func TestFollowTasksRenews(t *testing.T) {
	t.Parallel()
	for _, l := range named(tasksOver...) {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			s := newTaskServer(t, mcpgo.WithTasks(newTasks(t)))
			s.AddTool(mcp.NewTool("now"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				for i := range 8 {
					time.Sleep(1500 * ms)
					progress.Report(ctx, progress.Update{Progress: float64(i + 1), Message: strings.Repeat("x", i+1)})
				}
				return mcp.NewToolResultText("done"), ctx.Err()
			})
			c := connect(t, mcpgo.Limit(mcpgo.FollowTasks(l.open(t, s.MCPServer)), mcpgo.ClientLimits{},
				map[string]mcpgo.ClientLimits{"tools/call": {Timeout: 9 * time.Second, ResetOnProgress: true}}), true)
			got := record(c)
			res, err := c.CallTool(soon(t), call{tool: "now", token: "mine"}.request())
			if err != nil || !cmp.Equal([]string{"done"}, view(t, res).Texts) {
				t.Errorf("%v %v", res, err)
			}
			got.mu.Lock()
			defer got.mu.Unlock()
			last := -1.0
			for _, n := range got.byToken["mine"] {
				if n.Progress <= last {
					t.Errorf("%v after %v", n.Progress, last)
				}
				last = n.Progress
			}
			if len(got.byToken["mine"]) < 3 || len(got.byToken) != 1 {
				t.Errorf("%v", got.byToken)
			}
		})
	}
}

// Questions of a task are answered by the client's handler, one at a time or several.
func TestFollowTasksAnswers(t *testing.T) {
	t.Parallel()
	for _, l := range named(tasksOver...) {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			s := newTaskServer(t, mcpgo.WithTasks(newTasks(t)))
			c := connect(t, mcpgo.FollowTasks(l.open(t, s.MCPServer)), true, client.WithElicitationHandler(person{}))
			for _, tool := range []string{"asks", "later"} {
				res, err := c.CallTool(soon(t), call{tool: tool}.request())
				if err != nil || !cmp.Equal([]string{"accept <nil> asked"}, view(t, res).Texts) {
					t.Errorf("%s: %v %v", tool, res, err)
				}
			}
		})
	}
}

// losing is a transport that loses every second poll.
type losing struct {
	transport.Interface
	polls atomic.Int64
}

func (l *losing) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	if r.Method == "tasks/get" && l.polls.Add(1)%2 == 1 {
		return nil, errOwn
	}
	return l.Interface.SendRequest(ctx, r)
}

// A poll that is lost does not lose the call; a task that is unknown does, with the server's error.
func TestFollowTasksThroughLoss(t *testing.T) {
	t.Parallel()
	s := newTaskServer(t, mcpgo.WithTasks(newTasks(t)))
	inner := named("serve 2026")[0].open(t, s.MCPServer)
	c := connect(t, mcpgo.FollowTasks(&losing{Interface: inner}), true)
	s.release <- true
	if res, err := c.CallTool(soon(t), call{tool: "now"}.request()); err != nil || !cmp.Equal([]string{"done "}, view(t, res).Texts) {
		t.Errorf("%v %v", res, err)
	}
}
