package mcpgo_test

import (
	"testing"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
)

// SPEC 11.9: the ttl that a client asks for is answered with what is granted.
func TestTasksTTL(t *testing.T) {
	over(t, func(t *testing.T, w way) {
		s := newTaskServer(t, mcpgo.WithTasks(newTasks(t)))
		p := w.connect(t, s.MCPServer)
		call := func(task map[string]any) (map[string]any, map[string]any) {
			res, fault := p.call("tools/call", map[string]any{"name": "now", "arguments": map[string]any{}, "task": task})
			if h, ok := res["task"].(map[string]any); ok {
				res = h
			}
			return res, fault
		}
		if w.modern {
			if res, fault := call(map[string]any{"ttl": 60000}); res["taskId"] == nil || res["ttlMs"] != nil {
				t.Error(res, fault)
			}
			return
		}
		for asked, granted := range map[float64]float64{60000: 60000, 1: 200, 3600e3: 600e3} {
			res, fault := call(map[string]any{"ttl": asked})
			if res["ttl"] != granted {
				t.Errorf("%v: %v %v", asked, res, fault)
			}
		}
		if res, fault := call(map[string]any{}); res["taskId"] == nil || res["ttl"] != nil {
			t.Error(res, fault)
		}
		if res, fault := call(map[string]any{"ttl": -1}); fault["code"] != float64(adapter.CodeInvalidParams) {
			t.Error(res, fault)
		}
	})
}
