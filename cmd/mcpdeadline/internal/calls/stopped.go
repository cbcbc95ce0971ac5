package calls

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// stopServer cancels the request at the server, unless the host has done so. It returns the server
// that has the request, or nil.
func (c *call) stopServer(cause error) server.Run {
	if c.unsent.Load() || c.s.unsend(c.sent) {
		return nil
	}
	if context.Cause(c.ctx) != errHostCancelled {
		reason := "the call was cancelled"
		if cause != nil {
			reason = inWords(cause, cause.Error())
		}
		m := jsonrpc.Notification("notifications/cancelled", map[string]any{"requestId": c.sent, "reason": reason})
		m.About = string(c.sent)
		c.s.toServer(m)
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.s.up
}

// afterStop waits for the server's answer to a call that was stopped, which is a partial result at best.
// It waits for the grace of limits, and no longer than the host does: the grace ends with the total. If
// the server is alive but does not answer, afterStop does not wait for the whole of it. If the server says
// nothing at all, see settleDoubt.
func (c *call) afterStop(up server.Run, limits timeout.Config, elapsed time.Duration) (*jsonrpc.Message, error) {
	grace := max(limits.Grace-min(limits.Grace/10, 100*time.Millisecond), 0)
	alive := c.s.doubted(up, max(limits.Grace, 0)).proved
	wait := grace
	c.s.mu.Lock()
	handed := c.handed
	c.s.mu.Unlock()
	if limits.Total > 0 && !handed {
		wait = min(grace, max(limits.Total-elapsed, Overdue))
	}
	end := time.Now().Add(wait)
	limit := time.NewTimer(wait)
	defer limit.Stop()
	for {
		select {
		case m := <-c.answer:
			return m, failed(m)
		case <-c.lost:
			return nil, c.why
		case <-alive:
			alive = nil
			limit.Reset(min(Settle, time.Until(end)))
		case <-limit.C:
			return nil, nil
		}
	}
}

// reply returns the answer for the host, or nil if it wants none.
func (c *call) reply(m *jsonrpc.Message, err error) *jsonrpc.Message {
	switch {
	case context.Cause(c.ctx) == errHostCancelled:
		return nil
	case m != nil && (err == nil || errors.Is(err, toolcall.ErrResult) && !adapter.Foreign(err)):
		return m
	}
	text := words(err, "")
	fields := make(map[string]json.RawMessage)
	var content []json.RawMessage
	meta := make(map[string]json.RawMessage)
	if m != nil && m.Error != nil {
		var e struct{ Message string }
		_ = adapter.Unmarshal(m.Error, &e)
		text = words(err, e.Message)
	} else if m != nil && adapter.Unmarshal(m.Result, &fields) == nil {
		_ = adapter.Unmarshal(fields["content"], &content)
		_ = adapter.Unmarshal(fields["_meta"], &meta)
	}
	if fields["inputRequests"] != nil || fields["task"] != nil || fields["taskId"] != nil { // a question or a task that comes too late
		clear(fields)
		content = nil
	}
	put(fields, "isError", true)
	first, _ := json.Marshal(map[string]string{"type": "text", "text": text})
	put(fields, "content", append([]json.RawMessage{first}, content...))
	if outcome, ok := outcomeOf(err); ok {
		put(meta, toolcall.OutcomeKey, outcome)
	}
	if len(meta) > 0 {
		put(fields, "_meta", meta)
	}
	if c.version >= "2026-07-28" {
		put(fields, "resultType", "complete")
	}
	reply := jsonrpc.Result(c.id, fields)
	reply.About = string(c.id)
	return reply
}

func put(fields map[string]json.RawMessage, key string, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	fields[key] = raw
}
