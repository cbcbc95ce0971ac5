package mcpgo_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// legacyTasksOver are the links over which there are tasks of 2025-11-25.
var legacyTasksOver = []string{"serve 2025", "wrapped 2025", "wrapped 2025 stateless", "wrapped 2025 event store"}

// SPEC 11.2, 11.6: CallTool just takes longer, whether or not the client has listed the tools.
func TestFollowLegacyTasks(t *testing.T) {
	t.Parallel()
	for _, l := range named(legacyTasksOver...) {
		for _, listed := range []bool{false, true} {
			t.Run(l.name, func(t *testing.T) {
				t.Parallel()
				s := newTaskServer(t, mcpgo.WithTasks(newTasks(t)))
				c := connect(t, mcpgo.FollowTasks(l.open(t, s.MCPServer)), false)
				if listed {
					if _, err := c.ListTools(soon(t), mcp.ListToolsRequest{}); err != nil {
						t.Fatal(err)
					}
				}
				for _, tool := range []string{"only", "held", "plain"} { // the first cannot be called otherwise
					s.release <- true
					res, err := c.CallTool(soon(t), call{tool: tool, args: map[string]any{"what": tool}}.request())
					if err != nil || !cmp.Equal([]string{"done " + tool}, view(t, res).Texts) {
						t.Errorf("%v %v", res, err)
					}
				}
				res, err := c.CallTool(soon(t), call{tool: "stopped"}.request())
				if err != nil || view(t, res).Outcome != "total 124 100 100 0" {
					t.Errorf("stopped: %v %v", res, err)
				}
				// An error with the code of a store that is away, too.
				if _, err := c.CallTool(soon(t), call{tool: "breaks"}.request()); err == nil || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("breaks: %v", err)
				}
				if _, err := c.CallTool(soon(t), call{tool: "nothing"}.request()); err == nil || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a tool that is not there: %v", err)
				}
			})
		}
	}
}

// SPEC 11.5: a caller that gives up cancels the task.
func TestFollowLegacyTasksCancel(t *testing.T) {
	for _, l := range named(legacyTasksOver...) {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			s := newTaskServer(t, mcpgo.WithTasks(newTasks(t)))
			ctx, cancel := context.WithCancel(t.Context())
			tool := make(chan context.Context, 1)
			first := true
			c := connect(t, mcpgo.FollowTasks(polled(t, l.open(t, s.MCPServer), func() {
				if first {
					first = false
					tool <- <-s.started
					cancel()
				}
			})), false)
			if _, err := c.CallTool(ctx, call{tool: "now"}.request()); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			isCancelled(t, within(t, tool, "the start"))
		})
	}
}

// SPEC 11.10: an outage of the store, also while the result is fetched, loses no call.
func TestFollowLegacyTasksThroughAnOutage(t *testing.T) {
	t.Parallel()
	for _, l := range named(legacyTasksOver...) {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			store := &failingStore{Store: new(task.Memory), with: errOwn}
			s := newTaskServer(t, mcpgo.WithTasks(newTasks(t, task.WithStore(store))))
			c := connect(t, mcpgo.FollowTasks(l.open(t, s.MCPServer)), false)
			go func() {
				<-s.started
				store.times.Store(8)
				s.release <- true
			}()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if res, err := c.CallTool(ctx, call{tool: "now"}.request()); err != nil || !cmp.Equal([]string{"done "}, view(t, res).Texts) {
				t.Errorf("%v %v", res, err)
			}
		})
	}
}

// SPEC 11.4: questions of the task go to the client's handler.
func TestFollowLegacyTasksAsk(t *testing.T) {
	t.Parallel()
	for _, l := range named("serve 2025", "wrapped 2025", "wrapped 2025 event store") {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			s := newTaskServer(t, mcpgo.WithTasks(newTasks(t)))
			c := connect(t, mcpgo.FollowTasks(l.open(t, s.MCPServer)), false, client.WithElicitationHandler(person{}))
			if res, err := c.CallTool(soon(t), call{tool: "elicits"}.request()); err != nil || !cmp.Equal([]string{"accept <nil>"}, view(t, res).Texts) {
				t.Errorf("%v %v", res, err)
			}
		})
	}
}
