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

// LeastLimit is the shortest limit of a request that is not a tool call. The limit of -total may be too short for a
// server that has yet to be downloaded.
const LeastLimit = server.InitLimit

// limitsOf returns the limits of a request that is not a tool call: those of all tools or, if both are off, those of
// the preset. It returns false for a request that stays open for as long as the host wants. SPEC 16.8.
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

// limit answers a request of the host that is not a tool call with an error when its limit has passed. It returns when
// the request has been concluded.
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
	if stopped := (*timeout.Error)(nil); !errors.As(err, &stopped) || !s.conclude(string(id), in, true) {
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
	s.mu.Lock()
	up := s.up
	s.mu.Unlock()
	if up != nil {
		s.doubted(up, max(limits.Grace, 0))
	}
}
