package calls

import (
	"bytes"
	"encoding/json"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// toServer sends a message to the server, or queues it until a run is ready and not in doubt. It does not wait.
func (s *Session) toServer(m *jsonrpc.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue(m)
}

// queue is toServer for a caller that holds s.mu, which queue may release meanwhile.
func (s *Session) queue(m *jsonrpc.Message) {
	s.remember(m)
	switch {
	case s.over:
	case !s.ready, m.IsRequest() && s.doubt != nil && s.kills(s.doubt.up):
		s.waiting.add(m)
		if m.IsRequest() {
			s.hurry()
		}
	default:
		s.pass(s.up, m)
	}
}

// ask registers a request of the host and sends it to the server. It returns false if the session has ended.
func (s *Session) ask(m *jsonrpc.Message, in *inFlight) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	s.requests[string(m.ID)] = in
	if in.call != nil {
		s.tokens[string(in.call.token)] = in.call
	}
	s.queue(m)
	return true
}

// request sends a request of the proxy itself to a run of the server. renewed says that an earlier run has been sent it,
// too; see [jsonrpc.Message]. The answer, if any, is sent on the channel. The caller must call forget when it no longer
// needs the answer.
func (s *Session) request(up server.Run, method string, params any, renewed bool) (answer <-chan *jsonrpc.Message, forget func()) {
	c, id := make(chan *jsonrpc.Message, 1), newID()
	s.mu.Lock()
	s.own[string(id)] = c
	s.mu.Unlock()
	m := jsonrpc.Request(id, method, params)
	m.Awaited, m.Renewed = server.InitLimit, renewed
	up.Send(m)
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.own, string(id))
	}
}

// pass sends messages of the host to a run of the server, without requests that were stopped meanwhile. It adds the budget
// of the proxy to tool calls. The caller holds s.mu, which pass releases meanwhile. The run is not replaced before pass
// returns, so that it can return the requests that it does not accept; see sendAgain.
func (s *Session) pass(up server.Run, messages ...*jsonrpc.Message) {
	s.passing++
	defer func() {
		s.passing--
		s.passed.Broadcast()
	}()
	for _, m := range messages {
		var c *call
		if m.IsRequest() {
			in := s.requests[string(m.ID)]
			if in == nil || in.stopped {
				continue
			}
			c = in.call
		}
		s.mu.Unlock()
		if c != nil {
			if b := c.allows(); b != (policy.Budget{}) || m.Fields().Meta.Budget != nil {
				m = m.WithMeta(policy.BudgetKey, b.Object()) // replaces the host's budget, which the call may outlive
			}
		}
		up.Send(m)
		s.mu.Lock()
	}
}

// kills reports whether the end of a doubt may kill a run: the run has a process, and -ping is not 0. Requests wait for
// the end of a doubt only if it may kill the run.
func (s *Session) kills(up server.Run) bool { return s.Ping > 0 && up.Processes() != nil }

// hurry makes Serve end its delay before the next run of a server at a URL, because a request waits. For other servers
// it has no effect.
func (s *Session) hurry() {
	select {
	case s.asking <- struct{}{}:
	default:
	}
}

// unsend removes a request that was stopped from the queue, and reports whether it was queued. If not, it has been sent
// to the server, and is not sent to a later run.
func (s *Session) unsend(id json.RawMessage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in := s.requests[string(id)]; in != nil {
		in.stopped = true
	}
	return s.waiting.remove(func(m *jsonrpc.Message) bool { return m.IsRequest() && bytes.Equal(m.ID, id) })
}

// awaitServer waits until few bytes are queued, both for the current run and for the next one. It may block for as long
// as the server does not read, so the caller must hold no lock.
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

// sendAgain queues a request of the host that the current run did not accept for the next one, unless the request has
// ended or was stopped meanwhile. Any other request, such as a ping of the proxy, may come from an earlier run.
func (s *Session) sendAgain(m *jsonrpc.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in := s.requests[string(m.ID)]; in != nil && !in.stopped {
		s.unsent = true
		s.waiting.add(m)
		s.hurry()
	}
}
