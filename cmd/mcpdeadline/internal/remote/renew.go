package remote

import (
	"context"
	"net/http"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
)

// renews reports whether the server has refused the message of the exchange because it no longer knows the session. It
// then ends the run, and the next run sends the message again in a new session. answer is the server's answer, or nil
// if the refusal is in e.lastNonMessage. The protocol prescribes the status 404 for that. Another refusal counts only
// if the server begins a new session on trial. A message is sent again only once.
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

// renewLimit is how long the server may take to begin a new session on trial.
const renewLimit = 10 * time.Second

// begins sends initialize to the server and reports whether that begins a new session. The handover keeps the session
// for the next run.
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

// adoptTrial answers the initialize request m with the answer from the session on trial, which the run then continues.
// It returns false if there is no such session, or m is another message.
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
