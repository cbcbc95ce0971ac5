package mcpsdk_test

import (
	"context"
	"testing"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// SPEC 11.9: the ttl that a client asks for reaches the server through both wrappers, and is answered with
// what is granted.
func TestTasksTTL(t *testing.T) {
	t.Parallel()
	for name, connect := range peers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTaskServer(t)
			p := connect(t, s)
			if p.version != protocol2025 {
				if got := p.handle(p.call("gated", object{"task": object{"ttl": "soon"}})); got["ttlMs"] != nil {
					t.Error(got)
				}
				return
			}
			for asked, granted := range map[float64]float64{60000: 60000, 1: 200, 3600e3: 600e3} {
				h := p.handle(p.call("gated", object{"task": object{"ttl": asked}}))
				if got := p.request("tasks/get", object{"taskId": h["taskId"]}); h["ttl"] != granted || asked >= 60000 && got["ttl"] != granted {
					t.Errorf("%v: %v, %v", asked, h, got)
				}
			}
			if h := p.handle(p.call("gated", object{"task": object{}})); h["ttl"] != nil {
				t.Error(h)
			}
			ctx, cancel := context.WithTimeout(t.Context(), slack)
			defer cancel()
			m, err := p.do(ctx, "tools/call", p.callParams("gated", object{"task": object{"ttl": "soon"}}))
			if err != nil || m.Error == nil || m.Error.Code != adapter.CodeInvalidParams {
				t.Errorf("%v %+v", err, m)
			}
		})
	}
}
