package remote

import (
	"errors"
	"net/http"
	"regexp"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// oldEnough is the age of a session after which worthRenewing returns true even if the server has answered no request
// of the session.
const oldEnough = 10 * time.Second

// forgotten and forgottenHere match the texts with which servers reject a session that they do not know. The HTTP
// status of such a response varies. forgotten is for 4xx statuses. forgottenHere is stricter, for other statuses, whose
// text may come from a tool that has sessions of another kind.
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

// mayForget reports whether a response may mean that the server does not know the session and has not executed the
// message. answer is the answer in the response, or nil if the text of the response is in lastNonMessage.
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
		return e.streams.Load() == 0 // an open stream shows that the server still knows the session
	}
	return false
}

// worthRenewing reports whether the server has kept this session for a while: it has answered a request, or the session
// is older than oldEnough. A server that forgets every session at once would get a new session for each message.
func (u *remote) worthRenewing() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.proved || time.Since(u.begun) > oldEnough
}

// refusedLimit is how long a run with a forgotten session waits for the responses to its other messages.
const refusedLimit = time.Second

// errForgotten ends a run whose session the server no longer knows.
var errForgotten = errors.New("the server no longer knows the session")

// forget ends the run, on another goroutine, because the server no longer knows its session. If that is not certain,
// the session is ended at the server.
func (u *remote) forget(certain bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.forgotten {
		u.forgotten = true
		session := u.session
		if certain {
			session = ""
		}
		go u.endForgotten(session)
	}
}

// endForgotten ends the run, and a session at the server, unless that is "". It first waits up to refusedLimit for the
// responses to other messages, because requests that the server also refuses can be sent again. A request without a
// response may have had an effect, and cannot.
func (u *remote) endForgotten(session string) {
	refused := make(chan struct{})
	go func() {
		u.pending.Wait()
		close(refused)
	}()
	select {
	case <-refused:
	case <-time.After(refusedLimit):
	case <-u.ctx.Done():
	}
	u.endSession(session)
	u.stop(errForgotten)
}

// begin adds the exchange to pending, and to beginning if it begins a session. If the session is already forgotten, or
// no session is to be begun any more, it instead leaves a request to the next run, and returns false: the message must
// not be sent.
func (e *exchange) begin() bool {
	first := e.m.Method == "initialize"
	e.mu.Lock()
	over := e.forgotten || e.closing && first
	if !over {
		e.pending.Add(1)
		if first {
			e.beginning.Add(1)
		}
	}
	e.mu.Unlock()
	if over && e.m.IsRequest() {
		e.Unsent(e.m)
	}
	return !over
}

// answered removes the exchange from pending, because the server can no longer refuse its message. Only the first call
// has an effect.
func (e *exchange) answered() { e.over.Do(e.pending.Done) }

// unsend leaves the message of the exchange to the next run if it is a request. Other messages are dropped.
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

// missed handles a message that the run has not sent. It leaves a request to the next run if the session is forgotten,
// and drops any other message.
func (u *remote) missed(m *jsonrpc.Message) {
	if m.IsRequest() && u.isForgotten() {
		u.Unsent(m)
	}
}
