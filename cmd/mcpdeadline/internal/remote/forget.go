package remote

import (
	"errors"
	"net/http"
	"regexp"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// oldEnough is the age from which on a forgotten session is replaced by a new one even if the server has accepted
// nothing in it.
const oldEnough = 10 * time.Second

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
	said, own := e.lastNonMessage, false
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

// worthRenewing reports whether a new session is worth a try: the server has answered something in this one, or it is
// not new any more. Otherwise a server that forgets every session would get one for each message.
func (u *remote) worthRenewing() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.proved || time.Since(u.begun) > oldEnough
}

// refusedLimit is how long a run whose session is forgotten waits for the answers to other requests.
const refusedLimit = time.Second

// errForgotten ends a run whose session the server no longer knows.
var errForgotten = errors.New("the server no longer knows the session")

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

// begin records that the server may say in this exchange that it does not know the session. It returns false if the
// server has said so before: the message is for the next run.
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

// answered ends the part of the exchange in which the server may say that it does not know the session.
func (e *exchange) answered() { e.over.Do(e.pending.Done) }

// unsend leaves the message to the next run, if it is a request.
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

// unsendAll leaves the requests that the server has refused because it no longer knows the session to the next run.
// It is called at the end of the run.
func (u *remote) unsendAll() {
	for _, m := range u.queue.Close() {
		u.missed(m)
	}
}

// missed leaves a request that the run has not sent to the next run, if the server no longer knows the session.
func (u *remote) missed(m *jsonrpc.Message) {
	if m.IsRequest() && u.isForgotten() {
		u.Unsent(m)
	}
}
