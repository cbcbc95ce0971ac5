package calls

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/alive"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// FromHost passes on a message of the host. It is called by one goroutine at a time.
func (s *Session) FromHost(ctx context.Context, m *jsonrpc.Message) {
	s.awaitServer()
	if bytes.HasPrefix(m.Raw, jsonrpc.ByteOrderMark) { // some servers read what is behind it
		m = jsonrpc.Parse(m.Raw[len(jsonrpc.ByteOrderMark):])
	}
	if m.Fields(); m.Ambiguous != nil {
		s.Logger.Warn("a message of the host was refused", "method", m.Method, "error", m.Ambiguous)
		if m.ID != nil && m.Result == nil && m.Error == nil {
			s.Deliver(jsonrpc.Refusal(m.ID, jsonrpc.Error{Code: jsonrpc.InvalidRequest, Message: m.Ambiguous.Error()}))
		}
		return
	}
	switch {
	case m.IsRequest():
		if s.inUse(m.ID) {
			s.Deliver(jsonrpc.Refusal(m.ID, jsonrpc.Error{Code: jsonrpc.InvalidRequest, Message: "the id " + string(m.ID) + " is in use by another request"}))
			return
		}
		if m.Method == "ping" && s.answersPings() {
			s.Deliver(jsonrpc.Result(m.ID, map[string]any{}))
			return
		}
		if s.answersItself(ctx, m) {
			return
		}
		if m.Method == "initialize" {
			s.meet(m)
		}
		in := &inFlight{method: m.Method}
		if m.Method != "tools/call" {
			in.pulse, in.over = new(alive.Pulse), make(chan struct{})
		} else {
			m, in.call = s.newCall(m)
			in.pulse = &in.call.pulse
			if bad := s.taskCall(in.call).Refused(); bad != nil { // it must not reach the server
				s.Deliver(jsonrpc.Refusal(m.ID, bad))
				in.call.left()
				return
			}
		}
		// The request is sent here and not on the goroutine of the execution, so that no later
		// message of the host overtakes it.
		if !s.ask(m, in) {
			s.Deliver(jsonrpc.Failure(m.ID, s.refusal()))
			if in.call != nil {
				in.call.left()
			}
		} else if in.call != nil {
			go in.call.supervise(ctx)
		} else {
			go s.limit(m.ID, in)
		}
	case m.Method == "notifications/cancelled":
		s.hostCancels(m)
	case m.IsNotification():
		s.toServer(m)
	case m.IsResponse():
		s.hostAnswers(m)
	default:
		if items := m.Items(); items != nil {
			s.batches.Take(items, func(m *jsonrpc.Message) { s.FromHost(ctx, m) })
			return
		}
		s.refuse(m)
	}
}

// refuse answers a line of the host that is not a message. The line does not reach the server, which may understand
// more than the proxy and take it for a call, which would have no limit. A line without a method is not a call, but
// an answer without a result. SPEC 16.9.
func (s *Session) refuse(m *jsonrpc.Message) {
	var fields map[string]json.RawMessage
	err, called := json.Unmarshal(m.Raw, &fields), false
	for key := range fields {
		called = called || strings.EqualFold(key, "method")
	}
	if err == nil && fields != nil && !called {
		s.toServer(m)
		return
	}
	code, text := jsonrpc.InvalidRequest, "no message"
	if err != nil && fields == nil && !json.Valid(m.Raw) {
		code, text = jsonrpc.ParseError, err.Error()
	}
	id := jsonrpc.IDOf(m.Raw[:min(len(m.Raw), jsonrpc.HeadKept)], jsonrpc.LastOf(m.Raw, jsonrpc.TailKept))
	if id == nil {
		id = json.RawMessage("null")
	}
	s.Deliver(jsonrpc.Refusal(id, jsonrpc.Error{Code: code, Message: text}))
}

// answersPings reports whether the proxy answers the host's pings in the server's place. It does so while the proxy
// itself would end a server that hangs: during a call with a limit, and while it finds out whether the server must be
// killed. A server that does one thing at a time would answer after its call, and some hosts would have ended it by
// then.
func (s *Session) answersPings() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	for _, in := range s.requests {
		if in.call != nil && !in.call.endless.Load() {
			return true
		}
	}
	return s.doubt != nil && s.kills(s.doubt.up)
}

// hostCancels handles the host's cancellation of a request.
func (s *Session) hostCancels(m *jsonrpc.Message) {
	params := m.Fields()
	s.mu.Lock()
	id, in := jsonrpc.FindAlike(s.requests, string(params.RequestID))
	if in != nil && in.cancelLocal != nil {
		s.mu.Unlock()
		in.cancelLocal(errHostCancelled)
		return
	}
	if in != nil && in.call != nil && in.call.handleSent {
		s.mu.Unlock()
		return // answered with a task, which has its own request for cancelling
	}
	if in != nil && in.call == nil && in.method != "initialize" {
		s.concludeLocked(id, in, true) // the host expects no answer
	}
	s.mu.Unlock()
	if in != nil && in.method != "initialize" {
		s.batches.Forgo(json.RawMessage(id))
	}
	if in != nil && id != string(params.RequestID) { // the server knows it by what it was sent
		m = m.With(json.RawMessage(id), "params", "requestId")
	}
	if in != nil && s.unsend(json.RawMessage(id)) {
		m = nil
		if in.call != nil {
			in.call.unsent.Store(true)
		}
	}
	// The call is cancelled before the server learns of it, so that an answer of the server to the
	// cancellation is not taken for the result.
	if in != nil && in.call != nil {
		in.call.cancel(errHostCancelled)
	}
	if m != nil {
		s.toServer(m)
	}
}
