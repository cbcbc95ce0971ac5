package calls

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/stopped"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// stopServer cancels the request at the server, unless the host has cancelled it. It returns the run that has got the
// request, or nil if that has ended or the request had not been sent.
func (c *call) stopServer(cause error) server.Run {
	if c.unsent.Load() || c.s.unsend(c.sent) {
		return nil
	}
	c.s.mu.Lock()
	up := c.s.up
	c.s.mu.Unlock()
	select { // after the look at the run: a later run begins only when the call is lost
	case <-c.lost:
		return nil
	default:
	}
	if up != nil && context.Cause(c.ctx) != errHostCancelled {
		cancelled := jsonrpc.Notification("notifications/cancelled", map[string]any{"requestId": c.sent, "reason": stopped.Message(cause)})
		cancelled.Awaited = c.limits(c.runsOn).Grace
		c.s.toServer(cancelled)
	}
	return up
}

// afterStop waits for the server's answer to a call that was stopped, which may contain a partial result. It returns
// nil and nil if there is no answer in time. It waits for the grace of limits at most. Unless the call has been
// answered with a handle, it also stops waiting at the total, or after Overdue if that is later. Once another message
// shows that the server is alive, it waits for at most Settle. It begins a doubt about the run, which may kill it.
func (c *call) afterStop(up server.Run, limits timeout.Config, elapsed time.Duration) (*jsonrpc.Message, error) {
	grace := max(limits.Grace-min(limits.Grace/10, 100*time.Millisecond), 0)
	alive := c.s.doubted(up, max(limits.Grace, 0)).proved
	wait := grace
	c.s.mu.Lock()
	handed := c.handleSent
	c.s.mu.Unlock()
	if limits.Total > 0 && !handed {
		wait = min(grace, max(limits.Total-elapsed, Overdue))
	}
	end := time.Now().Add(wait)
	limit := time.NewTimer(wait)
	defer limit.Stop()
	for {
		select { // an answer wins over the end of the server: see lastAnswer
		case m := <-c.answer:
			return m, failed(m)
		case <-c.lost:
			return c.lastAnswer()
		case <-alive:
			alive = nil
			limit.Reset(min(Settle, time.Until(end)))
		case <-limit.C:
			return nil, nil
		}
	}
}

// reply returns the answer for the host: m, or an answer that reports err. It returns nil if the host has cancelled the
// call.
func (c *call) reply(m *jsonrpc.Message, err error) *jsonrpc.Message {
	_, limited := toolcall.OutcomeOf(err)
	switch {
	case context.Cause(c.ctx) == errHostCancelled:
		return nil
	case m != nil && (err == nil || errors.Is(err, toolcall.ErrResult) && !limited):
		return m
	}
	return stopped.Answer(c.id, c.version, m, err)
}

// failed returns toolcall.ErrResult if m is an error or a result whose isError is true, and otherwise nil.
func failed(m *jsonrpc.Message) error {
	if m.Error != nil {
		return toolcall.ErrResult
	}
	if bytes.Contains(m.Result, []byte(`"isError"`)) {
		var result struct{ IsError bool }
		if adapter.Unmarshal(m.Result, &result) == nil && result.IsError {
			return toolcall.ErrResult
		}
	}
	return nil
}
