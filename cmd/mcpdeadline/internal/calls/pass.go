package calls

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
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
			s.Deliver(jsonrpc.New(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": jsonrpc.InvalidRequest, "message": m.Ambiguous.Error()}}))
		}
		return
	}
	switch {
	case m.IsRequest():
		if s.inUse(m.ID) {
			s.Deliver(jsonrpc.New(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{
				"code": jsonrpc.InvalidRequest, "message": "the id " + string(m.ID) + " is in use by another request"}}))
			return
		}
		if m.Method == "ping" && s.vouches() {
			answer := jsonrpc.Result(m.ID, map[string]any{})
			answer.ID, answer.About = m.ID, string(m.ID)
			s.Deliver(answer)
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
			in.pulse, in.over = new(pulse), make(chan struct{})
		} else {
			m, in.call = s.newCall(m)
			in.pulse = &in.call.pulse
			if bad := s.taskCall(in.call).Refused(); bad != nil { // it must not reach the server
				reply := jsonrpc.New(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": bad})
				reply.About = string(m.ID)
				s.Deliver(reply)
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
			s.takeBatch(items, func(m *jsonrpc.Message) { s.FromHost(ctx, m) })
			return
		}
		s.refuse(m)
	}
}

// refuse answers what is no message. It does not reach the server, which may understand more than the proxy does, and
// take it for a call, which would have no limit. What has no method is no call; such is an answer without a result.
// SPEC 16.9.
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
	s.Logger.Warn("a message of the host was refused", "error", text)
	id := jsonrpc.IDOf(m.Raw[:min(len(m.Raw), jsonrpc.HeadKept)], jsonrpc.LastOf(m.Raw, jsonrpc.TailKept))
	if id == nil {
		id = json.RawMessage("null")
	}
	s.Deliver(jsonrpc.New(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": text}}))
}

// vouches reports whether the proxy answers the host's pings in the server's place. It does while it is what ends a
// server that hangs: during a call with a limit, and while it finds out whether the server is to be killed. A server
// that does one thing at a time would answer after its call, and some hosts would have ended it by then.
func (s *Session) vouches() bool {
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
	if in != nil && in.here != nil {
		s.mu.Unlock()
		in.here(errHostCancelled)
		return
	}
	if in != nil && in.call != nil && in.call.handed {
		s.mu.Unlock()
		return // answered with a task, which has its own request for cancelling
	}
	if in != nil && in.call == nil && in.method != "initialize" {
		s.concludeLocked(id, in, true) // the host expects no answer
	}
	s.mu.Unlock()
	if in != nil && in.method != "initialize" {
		if b := s.leaveBatch(id); b != nil {
			s.answered(b, nil)
		}
	}
	if in != nil && id != string(params.RequestID) { // the server knows it by what it was sent
		m = jsonrpc.Parse(jsonrpc.With(m.Raw, json.RawMessage(id), "params", "requestId"))
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

var errHostCancelled = errors.New("the host cancelled the call")

// fromServer passes on a message of a run of the server. It is called by one goroutine, or, if the
// server is at a URL, by one goroutine per request.
func (s *Session) fromServer(run int, m *jsonrpc.Message) {
	s.mu.Lock()
	if run != s.run || s.over {
		s.mu.Unlock()
		return // from a run that is being killed
	}
	s.mu.Unlock()
	m, text := jsonrpc.Sift(m)
	if text = bytes.TrimSpace(text); len(text) > 0 {
		s.noise(text)
	}
	if m == nil {
		s.mistaken(text)
		return
	}
	if !s.awaitHost(run) {
		return
	}
	s.dispatch(run, m)
}

// dispatch passes on a message of a run of the server, or one by one those of a batch.
func (s *Session) dispatch(run int, m *jsonrpc.Message) {
	switch {
	case m.IsResponse():
		s.serverAnswers(m)
	case m.IsRequest():
		s.serverAsks(run, m)
	case m.Method == "notifications/progress":
		s.serverReports(m)
	case m.Method == "notifications/cancelled":
		s.serverCancels(run, m)
	case m.Method == "notifications/message":
		if s.Alive.Log {
			s.sign(m)
		}
		s.Deliver(m)
	case m.IsNotification():
		s.Deliver(m)
	default:
		for _, item := range m.Items() {
			one := jsonrpc.Parse(item)
			one.About = m.About
			s.dispatch(run, one)
		}
	}
}

// awaitHost notes that a run of the server has something to say, and waits until the host has room for it. It
// reports false if the run has ended meanwhile. A host that does not read holds up the server and nothing else:
// a call that is stopped meanwhile is answered behind what waits.
func (s *Session) awaitHost(run int) bool {
	s.mu.Lock()
	s.heard = true
	s.prove()
	s.stuck++
	s.mu.Unlock()
	s.Room()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stuck--
	return run == s.run
}

// sign records a sign of life: of the call that m belongs to, or of all calls if that is unknown or
// m is nil.
func (s *Session) sign(m *jsonrpc.Message) {
	for _, p := range s.about(m) {
		p.beat(nil)
	}
}

func (s *Session) serverAnswers(m *jsonrpc.Message) {
	id := string(m.ID)
	s.mu.Lock()
	if own, ok := s.own[id]; ok {
		delete(s.own, id)
		s.mu.Unlock()
		own <- m
		return
	}
	asked, in := jsonrpc.FindAlike(s.requests, id)
	if in != nil && in.here != nil { // the server has not been asked
		in = nil
	}
	if in != nil && in.call == nil {
		s.concludeLocked(asked, in, false)
	}
	late := in == nil && s.isGone(id)
	s.mu.Unlock()
	if in == nil {
		switch {
		case id == "null": // the answer to a message that the server could not read
			s.stray(m)
			s.Deliver(m)
		case !late:
			s.stray(m)
		}
		return
	}
	if asked != id {
		m = m.WithID(asked)
	}
	if jsonrpc.Normalize(m) == nil {
		about := m.About
		m = jsonrpc.Failure(json.RawMessage(asked), "the server's answer has neither a result nor an error as the protocol has them: "+jsonrpc.Shorten(string(m.Raw)))
		m.ID, m.About = json.RawMessage(asked), about
	} else {
		m = jsonrpc.Normalize(m)
	}
	if in.call == nil {
		s.Deliver(s.amend(in.method, m))
		return
	}
	in.call.heard.Store(true)
	select {
	case in.call.answer <- m:
	default: // answered twice
		s.stray(m)
	}
}

// stray logs an answer that belongs to no request. SPEC 8.11.
func (s *Session) stray(m *jsonrpc.Message) {
	s.Logger.Warn("the server sent an answer that belongs to no request", "answer", jsonrpc.Shorten(string(m.Raw)))
}

// mistaken fails the request that a line which is no message was meant to answer. SPEC 8.11.
func (s *Session) mistaken(line []byte) {
	var items []json.RawMessage
	if adapter.Unmarshal(line, &items) != nil {
		items = []json.RawMessage{line}
	}
	for _, item := range items {
		m := new(jsonrpc.Message)
		if err := adapter.Unmarshal(item, m); err != nil && m.ID == nil || m.Method != "" || m.ID == nil {
			continue
		}
		s.mu.Lock()
		_, in := jsonrpc.FindAlike(s.requests, string(m.ID))
		s.mu.Unlock()
		if in != nil && in.here == nil {
			m.Raw, m.Result, m.Error = item, nil, nil
			s.serverAnswers(m)
		}
	}
}

// isGone reports whether an id is that of a request that was cancelled or stopped, so that nobody waits for its
// answer. The caller holds s.mu.
func (s *Session) isGone(id string) bool {
	if strings.HasPrefix(id, `"mcpdeadline `+ownName) {
		return true
	}
	for _, gone := range s.gone {
		if gone != "" && (jsonrpc.Same(gone, id) || jsonrpc.Alike(gone, id)) {
			return true
		}
	}
	return false
}

// abandon notes that nobody waits for the answer to a request any more. The caller holds s.mu.
func (s *Session) abandon(id string) {
	s.gone[s.goneAt] = id
	s.goneAt = (s.goneAt + 1) % len(s.gone)
}

func (s *Session) serverReports(m *jsonrpc.Message) {
	var params struct {
		ProgressToken json.RawMessage
		Progress      float64
		Total         float64
		Message       string
	}
	_ = adapter.Unmarshal(m.Params, &params)
	token := string(params.ProgressToken)
	s.mu.Lock()
	named, c := jsonrpc.FindAlike(s.tokens, token)
	late := false
	if c == nil && token != "" {
		for _, ended := range s.ended {
			late = late || ended != "" && (jsonrpc.Same(ended, token) || jsonrpc.Alike(ended, token))
		}
	}
	s.mu.Unlock()
	switch {
	case late: // nothing follows the answer
	case c != nil:
		if !jsonrpc.Same(named, token) { // as the host knows it
			about := m.About
			m = jsonrpc.Parse(jsonrpc.With(m.Raw, c.token, "params", "progressToken"))
			m.About = about
		}
		c.reported(m, params.Progress, params.Total, params.Message)
	default: // about another request, or a task
		s.Deliver(m)
	}
}

// tooLong handles a message of the server that exceeds the limit. If it is an answer, the host gets
// an error in its place.
func (s *Session) tooLong(run int, head, tail []byte, length int) {
	text := fmt.Sprintf("the server sent a message of %d bytes, which exceeds the limit of %d", length, s.Max)
	s.Logger.Warn(text)
	if id := jsonrpc.IDOf(head, tail); id != nil {
		s.fromServer(run, jsonrpc.Failure(id, text))
	}
}
