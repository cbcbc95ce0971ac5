package calls

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// toServer sends a message to the server, or keeps it until a server is ready.
func (s *Session) toServer(m *jsonrpc.Message) {
	s.mu.Lock()
	s.queue(m)
}

// queue is toServer for a caller that holds s.mu. It unlocks s.mu.
func (s *Session) queue(m *jsonrpc.Message) {
	s.remember(m)
	up := s.up
	switch {
	case s.over:
		up = nil
	case !s.ready, m.IsRequest() && s.doubt != nil && s.kills(s.doubt.up):
		s.waiting.add(m)
		if m.IsRequest() {
			s.hurry()
		}
		up = nil
	}
	s.mu.Unlock()
	if up != nil {
		s.pass(up, m)
	}
}

// ask sends a request of the host to the server. It reports false if the session has ended.
func (s *Session) ask(m *jsonrpc.Message, in *inFlight) bool {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return false
	}
	s.requests[string(m.ID)] = in
	if in.call != nil {
		s.tokens[string(in.call.token)] = in.call
	}
	s.queue(m)
	return true
}

// request sends a request of the proxy to a run of the server. The caller must call forget, whether
// or not an answer comes.
func (s *Session) request(up server.Run, method string, params any) (answer <-chan *jsonrpc.Message, forget func()) {
	c := make(chan *jsonrpc.Message, 1)
	s.mu.Lock()
	s.ownIDs++
	id := strconv.Quote("mcpdeadline " + ownName + " " + strconv.Itoa(s.ownIDs))
	s.own[id] = c
	s.mu.Unlock()
	up.Send(jsonrpc.Request(json.RawMessage(id), method, params))
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.own, id)
	}
}

// pass sends a message of the host to a run of the server. A tool call says how long the proxy waits for it.
func (s *Session) pass(up server.Run, m *jsonrpc.Message) {
	if m.Method == "tools/call" && m.IsRequest() {
		s.mu.Lock()
		in := s.requests[string(m.ID)]
		s.mu.Unlock()
		if in != nil && in.call != nil {
			if b := in.call.allows(); b != (policy.Budget{}) || m.Fields().Meta.Budget != nil {
				m = m.WithMeta(policy.BudgetKey, b.Object()) // the host's own budget is not for the server, since the call may run on
			}
		}
	}
	up.Send(m)
}

// kills reports whether a run may be killed: it has a process, and -ping is not off. Requests do not wait
// for the end of the doubt about any other run.
func (s *Session) kills(up server.Run) bool { return s.Ping > 0 && up.Processes() != nil }

// hurry makes the next run begin soon, because a request waits for it.
func (s *Session) hurry() {
	select {
	case s.asking <- struct{}{}:
	default:
	}
}

// unsend removes a request that still waits for a server. It reports whether the request was still waiting.
func (s *Session) unsend(id json.RawMessage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting.remove(func(m *jsonrpc.Message) bool { return m.IsRequest() && bytes.Equal(m.ID, id) })
}

// awaitServer waits until the server has read most of what is queued for it, and until little waits for the next run.
// It is called where no lock is held and no call waits.
func (s *Session) awaitServer() {
	s.mu.Lock()
	for s.waiting.size > jsonrpc.QueueOf(s.Max) && !s.over {
		s.waiting.room.Wait()
	}
	up := s.up
	s.mu.Unlock()
	if up != nil {
		up.Await()
	}
}

// waitAgain keeps a request that a run did not accept for the next run.
func (s *Session) waitAgain(m *jsonrpc.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests[string(m.ID)] != nil {
		s.waiting.add(m)
		s.hurry()
	}
}
