package remote

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// renewLimit is how long the server may take to begin a session on trial.
const renewLimit = 10 * time.Second

// refusedLimit is how long a run whose session is forgotten waits for the answers to other requests.
const refusedLimit = time.Second

// errForgotten ends a run whose session the server no longer knows.
var errForgotten = errors.New("the server no longer knows the session")

// renews has the message sent again in a new session if the server has refused it because it no longer knows
// this one. answer is the server's answer, or nil if e.said has what came. The standard's word for that is 404.
// Others count if a new session proves to be what helps: if the server begins one, with the same headers.
// A message is sent again once only.
func (e *exchange) renews(ctx context.Context, answer *jsonrpc.Message) bool {
	if e.session == "" || e.m.Method == "initialize" || !e.mayForget(answer) {
		return false
	}
	if e.m.Renewed {
		e.handover.helpsNot(e.code)
		return false
	}
	e.renewing.Lock()
	defer e.renewing.Unlock()
	if !e.isForgotten() {
		if ctx.Err() != nil || !e.worth() || e.code != http.StatusNotFound && (!e.handover.helps(e.code) || !e.begins(ctx)) {
			return false
		}
		e.forget()
	}
	e.unsend()
	return true
}

// forget ends the run because the server no longer knows its session.
func (u *remote) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.forgotten {
		u.forgotten = true
		u.posts.Add(1)
		go u.endForgotten()
	}
}

// unsend has the message sent again by the next run, if it is a request.
func (e *exchange) unsend() {
	if !e.m.IsRequest() {
		return
	}
	e.m.Renewed = true
	e.Unsent(e.m)
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.open, string(e.m.ID))
}

func (u *remote) isForgotten() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.forgotten
}

// begin notes that the server may say in this exchange that it does not know the session. It reports false if
// that is known: the message is for the next run.
func (e *exchange) begin() bool {
	e.mu.Lock()
	known := e.forgotten
	if !known {
		e.pending.Add(1)
	}
	e.mu.Unlock()
	if known && e.m.IsRequest() {
		e.Unsent(e.m)
	}
	return !known
}

// answered is called when the server says no more that it does not know the session.
func (e *exchange) answered() { e.over.Do(e.pending.Done) }

// endForgotten ends the run. Requests that are being refused as well have time for it, so that they are sent
// again. Others that have no answer may have had an effect.
func (u *remote) endForgotten() {
	defer u.posts.Done()
	refused := make(chan struct{})
	go func() {
		u.pending.Wait()
		close(refused)
	}()
	limit := time.NewTimer(refusedLimit)
	defer limit.Stop()
	select {
	case <-refused:
	case <-limit.C:
	case <-u.ctx.Done():
	}
	u.stop(errForgotten)
}

// unsendAll is called at the end of the run. Requests that the server has not got because it no longer knows
// the session are for the next run.
func (u *remote) unsendAll() {
	for _, m := range u.queue.Close() {
		u.missed(m)
	}
}

// missed is called with a message that the run has not taken.
func (u *remote) missed(m *jsonrpc.Message) {
	if m.IsRequest() && u.isForgotten() {
		u.Unsent(m)
	}
}

// oldEnough is the age from which on a session that is forgotten is worth a new one, whatever came of it.
const oldEnough = 10 * time.Second

// worth reports whether a new session is worth a try: the server has accepted something in this one, or it is
// not new any more. Otherwise a server that forgets every session would get one for each message.
func (u *remote) worth() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.proved || time.Since(u.begun) > oldEnough
}

// What servers say of a session that they do not know, many with a status of their own choice. forgotten is for
// refusals of the client, and forgottenHere for statuses that may also come from the tool itself, whose sessions
// may be others.
var (
	forgotten = regexp.MustCompile(`(?i)mcp-?session-?id` +
		`|\b(no|not an?|invalid|bad|unknown|expired|missing|stale|inactive|terminated|unrecogni[sz]ed|(could|can) ?not find|couldn't find|can't find)` +
		`( or \w+)?( (the|an?|your|this|valid|active|such|existing|known|mcp))* session` +
		`|\bsession[^.;{}]{0,60}(\bnot?\b|n't\b|expired|invalid|unknown|missing|required|terminated|closed|gone|lost|stale|ended|inactive|timed out)` +
		`|\bsession[ _-]?(id)?[ _-]?(not[ _-]?found|expired|unknown|invalid|terminated|closed|missing)` +
		`|\bno (\w+ )?(transport|connection|server)( \w+)? for (the |this )?session` +
		`|\b(server|client|connection|transport) not initiali[sz]ed\b|\bexpect(ed|s)?( an?)? initiali[sz]e request\b`)
	forgottenHere = regexp.MustCompile(`(?i)mcp-?session-?id` +
		`|\b(no (valid|such)|invalid|unknown|expired|missing|terminated|(could|can) ?not find)( or \w+)?( (the|your|mcp))* session` +
		`|\bsession[ _-]?(id)?[ _-]*((is|was|has been|has|does|do|have) )*(not[ _-]?found|not exist|expired|unknown|invalid|terminated|missing)`)
)

// mayForget reports whether the answer may mean that the server does not know the session, and has not done what
// it was asked.
func (e *exchange) mayForget(answer *jsonrpc.Message) bool {
	said, own := e.said, false
	if answer != nil {
		if answer.Error == nil {
			return false
		}
		said, own = string(answer.Error), jsonrpc.Same(string(answer.ID), string(e.m.ID))
		var failed struct{ Code int }
		_ = adapter.Unmarshal(answer.Error, &failed)
		if (failed.Code == jsonrpc.MethodNotFound || failed.Code == jsonrpc.InvalidParams) && (e.code != http.StatusNotFound || !forgotten.MatchString(said)) {
			return false
		}
	}
	switch {
	case e.code == http.StatusNotFound:
		return true
	case e.code < 300 || e.code >= 500:
		return !own && forgottenHere.MatchString(said)
	case forgotten.MatchString(said):
		return true
	case e.code == http.StatusUnauthorized && !e.auth, e.code == http.StatusGone:
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.streams == 0 // otherwise the server knows it well enough to go on with another request
	}
	return false
}

// A trial is a session that was begun to see whether the server does. The next run continues it: there are
// servers that begin one session only.
type trial struct {
	session, version string
	answer           *jsonrpc.Message // to initialize
}

// A handover is what a run leaves to those after it.
type handover struct {
	mu      sync.Mutex
	trial   *trial
	useless map[int]time.Time // since when a new session has not helped against a status
}

// uselessLimit is how long no new session is tried against a status against which the last one has not helped.
const uselessLimit = time.Minute

func (h *handover) helpsNot(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.useless == nil {
		h.useless = make(map[int]time.Time)
	}
	h.useless[status] = time.Now()
}

func (h *handover) helps(status int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	since, useless := h.useless[status]
	return !useless || time.Since(since) >= uselessLimit
}

func (h *handover) put(t *trial) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trial = t
}

// take returns what was put, or nil, and forgets it.
func (h *handover) take() *trial {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.trial
	h.trial = nil
	return t
}

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
		queue: jsonrpc.NewMailbox(), open: map[string]*posting{string(initialize.ID): {initialize, cancel, make(chan struct{})}},
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

// adopts continues the session that the last run has left, instead of sending initialize. It reports false if
// there is none, or if m is another message.
func (u *remote) adopts(m *jsonrpc.Message) bool {
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
	answer.About = string(m.ID)
	u.Message(answer)
	return true
}
