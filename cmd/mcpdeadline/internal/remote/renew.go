package remote

import (
	"context"
	"errors"
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
	if e.session == "" || e.session != e.current() || e.m.Method == "initialize" || !e.mayForget(answer) {
		return false // if the host has begun another session, this one is no longer of use
	}
	if e.m.Renewed {
		e.handover.renewFailed(e.code)
		return false
	}
	mayRenew := e.handover.mayRenew(e.code)
	switch {
	case e.isForgotten():
	case ctx.Err() != nil:
		return false
	case e.code == http.StatusNotFound:
		if !mayRenew && !e.worthRenewing() {
			return false
		}
		e.forget(true)
	case !mayRenew:
		return false
	default: // messages that are refused during a trial share its result
		result := make(chan error, 1)
		e.posts.Go(func() { // the trial ends before the run
			_, err, _ := e.trials.Do("", e.try)
			result <- err
		})
		select {
		case err := <-result:
			if err != nil {
				return false
			}
		case <-ctx.Done():
			if !e.isForgotten() { // otherwise the trial has ended the run, and ctx with it, before its result was read
				return false
			}
		}
	}
	e.unsend()
	return true
}

// renewLimit is how long the server may take to begin a new session on trial.
const renewLimit = 10 * time.Second

var errNoSession = errors.New("the server began no new session")

// try begins a new session on trial, which the handover keeps for the next run, and forgets that of u. If that is
// forgotten already, try does nothing. It returns errNoSession if the server begins none, or if u is closing. The other
// result is nil: it completes the signature that [singleflight.Group] requires.
func (u *remote) try() (any, error) {
	u.mu.Lock()
	initialize, forgotten, closing := u.initialize, u.forgotten, u.closing
	if !closing {
		u.beginning.Add(1)
	}
	u.mu.Unlock()
	if closing {
		return nil, errNoSession
	}
	defer u.beginning.Done()
	if forgotten { // another trial has ended meanwhile
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(u.ctx, renewLimit)
	defer cancel()
	var answer *jsonrpc.Message
	next := &remote{
		Receiver: server.Receiver{Log: u.Log, Message: func(m *jsonrpc.Message) {
			if m.IsResponse() && m.Result != nil {
				answer = m
			}
		}},
		handover: u.handover, url: u.url, header: u.header, client: u.client, max: u.max, ctx: ctx,
		open: map[string]*posting{string(initialize.ID): {m: initialize}},
	}
	first := &exchange{remote: next, m: initialize, settled: cancel}
	first.begin()
	first.post(ctx)
	if answer == nil || next.session == "" {
		return nil, errNoSession
	}
	u.forget(false)
	u.endTrial(u.handover.trial.Swap(&trial{next.session, next.version, answer}))
	u.mu.Lock()
	closing = u.closing
	u.mu.Unlock()
	if closing { // Close may not have seen the trial
		u.endTrial(u.handover.trial.Swap(nil))
	}
	return nil, nil
}

// endTrial ends a session on trial that no run has continued, if t is not nil.
func (u *remote) endTrial(t *trial) {
	if t != nil {
		u.endSession(t.session)
	}
}

// endUnused ends the sessions that an initialize request has left unused: the earlier session of the run or, if the
// request had no answer, the new one.
func (e *exchange) endUnused(earlier string) {
	used := e.current()
	for _, id := range []string{earlier, e.session} {
		if id != used {
			e.endSession(id)
		}
	}
}

// endSession ends a session at the server with a DELETE, and does not wait; see handover.await. It does nothing if the
// id is "".
func (u *remote) endSession(id string) {
	if id == "" {
		return
	}
	u.handover.end(func() {
		ctx, cancel := context.WithTimeout(context.Background(), server.CloseLimit) // the run may have ended
		defer cancel()
		res, err := u.do(ctx, http.MethodDelete, nil, "Mcp-Session-Id", id)
		if err == nil {
			res.Body.Close()
		}
	})
}

// adoptTrial answers the initialize request m with the answer from the session on trial, which the run then continues.
// It returns false if there is no such session, the session of the run is forgotten, or m is another message.
func (u *remote) adoptTrial(m *jsonrpc.Message) bool {
	if m.Method != "initialize" || u.isForgotten() {
		return false
	}
	t := u.handover.trial.Swap(nil)
	if t == nil {
		return false
	}
	u.mu.Lock()
	closing := u.closing
	u.session, u.version, u.initialize = t.session, t.version, m
	u.mu.Unlock()
	if closing { // Close may not have seen the session
		u.endTrial(t)
	}
	u.Message(t.answer.WithID(string(m.ID)))
	return true
}
