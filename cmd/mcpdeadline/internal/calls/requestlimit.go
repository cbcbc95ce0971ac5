package calls

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/stopped"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// LeastLimit is the shortest limit of a request that is not a tool call. A shorter -total might be too short for
// initialize, while a package manager downloads the server.
const LeastLimit = server.InitLimit

// limitsOf returns the limits of a request that is not a tool call: the limits for all tools or, if both are off,
// [timeout.Default], each at least LeastLimit. The bool is false for subscriptions/listen, which has no limits. SPEC
// 16.8.
func (s *Session) limitsOf(method string) (timeout.Config, bool) {
	if method == "subscriptions/listen" {
		return timeout.Config{}, false
	}
	c, err := s.profile().Limits.Policy.Resolve("", 0)
	if err != nil || c.Total <= 0 && c.Idle <= 0 {
		c = timeout.Default()
	}
	least := func(d time.Duration) time.Duration {
		if d > 0 {
			return max(d, LeastLimit)
		}
		return 0
	}
	c.Total, c.Idle, c.Reserve = least(c.Total), least(c.Idle), 0
	if method == "tasks/result" && c.Total > 0 { // the server is silent for as long as its task takes
		c.Idle = 0
	}
	return c, true
}

// limit waits until a request of the host that is not a tool call has been concluded. If a limit fires first, it
// answers the request with an error, cancels it at the server, and begins a doubt about the server.
func (s *Session) limit(id json.RawMessage, in *inFlight) {
	limits, limited := s.limitsOf(in.method)
	if !limited {
		return
	}
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		in.pulse.Begin(ctx, s.processes, s.Alive, &s.load)
		select {
		case <-in.over:
		case <-ctx.Done():
		}
		in.pulse.End(false)
		return nil
	}, timeout.WithName(in.method), timeout.WithOperation(timeout.OperationRequest), limits)
	if !errors.As(err, new(*timeout.Error)) {
		return
	}
	s.mu.Lock()
	open, up := s.conclude(string(id), in, true), s.up
	s.mu.Unlock()
	if !open {
		return
	}
	text := stopped.Text(err, "")
	s.Logger.Warn("request not answered by the server", "method", in.method, "error", text)
	sent := !s.unsend(id)
	s.Deliver(jsonrpc.Failure(id, in.method+": "+text))
	if !sent {
		return
	}
	if in.method != "initialize" {
		s.toServer(jsonrpc.Notification("notifications/cancelled", map[string]any{"requestId": id, "reason": text}))
	}
	if up != nil {
		s.doubted(up, max(limits.Grace, 0))
	}
}
