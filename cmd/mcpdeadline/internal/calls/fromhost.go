package calls

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/alive"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// FromHost handles a message of the host. It first waits until the server has room for messages. Calls of FromHost must
// not overlap.
func (s *Session) FromHost(m *jsonrpc.Message) {
	s.awaitServer()
	if bytes.HasPrefix(m.Raw, jsonrpc.ByteOrderMark) { // some servers would skip the mark and read the message
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
		if s.answersItself(m) {
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
			if bad := s.refuses(in.call); bad != nil { // it must not reach the server
				s.Deliver(jsonrpc.Refusal(m.ID, bad))
				in.call.left()
				return
			}
		}
		// The request is sent on this goroutine, so that no later message of the host overtakes it.
		if !s.ask(m, in) {
			s.Deliver(jsonrpc.Failure(m.ID, s.refusal()))
			if in.call != nil {
				in.call.left()
			}
		} else if in.call != nil {
			go in.call.supervise()
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
			s.batches.Take(items, func(m *jsonrpc.Message) { s.FromHost(m) })
			return
		}
		s.refuse(m)
	}
}

// refuse answers a line of the host that is not a valid message with an error (SPEC 16.9). It does not forward the
// line, because a lenient server might execute it as a call, which would have no limit. An object without a method
// cannot be a call, so refuse forwards it.
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

// answersPings reports whether the proxy answers a ping of the host itself. It does while it would detect that the
// server hangs: during a call with a limit, and during a doubt that may kill the server, but not after the end of the
// session. A server that handles one request at a time answers a ping only after its call, and some hosts would have
// ended it by then.
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

// forgo records that a request will not be answered.
func (s *Session) forgo(id json.RawMessage) {
	s.batches.Forgo(id)
	s.Forgone(id)
}

// hostCancels handles notifications/cancelled from the host.
func (s *Session) hostCancels(m *jsonrpc.Message) {
	params := m.Fields()
	s.mu.Lock()
	id, in := jsonrpc.FindAlike(s.requests, string(params.RequestID))
	switch {
	case in == nil:
		s.mu.Unlock()
		s.toServer(m)
		return
	case in.cancelLocal != nil:
		s.mu.Unlock()
		in.cancelLocal(errHostCancelled)
		s.forgo(json.RawMessage(id))
		return
	case in.call != nil && in.call.handleSent:
		s.mu.Unlock()
		return // answered with a handle; a task is cancelled with tasks/cancel, a continued call with a tool
	case in.call == nil && in.method != "initialize":
		s.conclude(id, in, true) // the host expects no answer
	}
	s.mu.Unlock()
	if in.method != "initialize" {
		s.forgo(json.RawMessage(id))
	}
	if id != string(params.RequestID) { // the host has spelled the id in another way than in the request
		m = m.With(json.RawMessage(id), "params", "requestId")
	}
	unsent := s.unsend(json.RawMessage(id))
	if in.call != nil {
		if unsent {
			in.call.unsent.Store(true)
		}
		in.call.cancel(errHostCancelled) // before an answer of the server to m could become the result of the call
	}
	if !unsent {
		s.toServer(m)
	}
}
