package remote

import (
	"context"
	"net/http"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
)

// renews has the message sent again in a new session if the server has refused it because it no longer knows
// this one. answer is the server's answer, or nil if e.lastNonMessage has what came. The standard's word for that is
// 404. Others count if a new session proves to be what helps: if the server begins one, with the same headers. A
// message is sent again once only.
func (e *exchange) renews(ctx context.Context, answer *jsonrpc.Message) bool {
	if e.session == "" || e.m.Method == "initialize" || !e.mayForget(answer) {
		return false
	}
	if e.m.Renewed {
		e.handover.renewFailed(e.code)
		return false
	}
	e.renewing.Lock()
	defer e.renewing.Unlock()
	if !e.isForgotten() {
		if ctx.Err() != nil || !e.worthRenewing() || e.code != http.StatusNotFound && (!e.handover.mayRenew(e.code) || !e.begins(ctx)) {
			return false
		}
		e.forget()
	}
	e.unsend()
	return true
}

// renewLimit is how long the server may take to begin a session on trial.
const renewLimit = 10 * time.Second

// begins reports whether the server begins a session, which it leaves to the next run.
func (e *exchange) begins(ctx context.Context) bool {
	e.mu.Lock()
	initialize := e.initialize
	e.mu.Unlock()
	if initialize == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, renewLimit)
	defer cancel()
	var answer *jsonrpc.Message
	u := &remote{
		Receiver: server.Receiver{Run: e.Run, Log: e.Log},
		url:      e.url, header: e.header, client: e.client, max: e.max,
		queue: jsonrpc.NewMailbox(), open: map[string]*posting{string(initialize.ID): {m: initialize, cancel: cancel, written: make(chan struct{})}},
	}
	u.Message = func(m *jsonrpc.Message) {
		if m.IsResponse() && m.Result != nil {
			answer = m
		}
	}
	u.ctx, u.stop = context.WithCancelCause(ctx)
	defer u.stop(nil)
	first := &exchange{remote: u, m: initialize, settled: cancel}
	first.begin()
	first.post(ctx)
	if answer == nil || u.session == "" {
		return false
	}
	e.handover.put(&trial{u.session, u.version, answer})
	return true
}

// adoptTrial continues the session that the last run has left, instead of sending initialize. It reports false if
// there is none, or if m is another message.
func (u *remote) adoptTrial(m *jsonrpc.Message) bool {
	if m.Method != "initialize" {
		return false
	}
	t := u.handover.take()
	if t == nil {
		return false
	}
	u.mu.Lock()
	u.session, u.version, u.initialize = t.session, t.version, m
	u.mu.Unlock()
	answer := t.answer.WithID(string(m.ID))

	u.Message(answer)
	return true
}
