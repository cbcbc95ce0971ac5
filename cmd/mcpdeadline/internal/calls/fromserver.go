package calls

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// fromServer handles a message of a run of the server, and waits until the host has room for it. For a server that is a
// process, calls do not overlap; for a server at a URL, each request has a goroutine that calls fromServer.
func (s *Session) fromServer(run int, m *jsonrpc.Message) {
	s.mu.Lock()
	if run != s.run || s.over {
		s.mu.Unlock()
		return // from an earlier run, or after the end of the session
	}
	s.mu.Unlock()
	m, text := jsonrpc.Sift(m)
	if text = bytes.TrimSpace(text); len(text) > 0 {
		s.noise(text)
	}
	if m == nil {
		s.failMalformed(text)
		return
	}
	if !s.awaitHost(run, m) {
		return
	}
	s.dispatch(run, m)
}

// tooLong logs that a message of the server exceeds the limit. If the message is an answer, it is replaced by an error.
// head and tail are the beginning and the end of the message, and length is its length in bytes.
func (s *Session) tooLong(run int, head, tail []byte, length int) {
	text := fmt.Sprintf("the server sent a message of %d bytes, which exceeds the limit of %d", length, s.Max)
	s.Logger.Warn(text)
	if id := jsonrpc.IDOf(head, tail); id != nil {
		s.fromServer(run, jsonrpc.Failure(id, text))
	}
}

// awaitHost records that a run has sent the message m, which proves that it is alive, and waits until the host has room
// for m, unless m answers a request of the proxy. It returns false if the run has ended meanwhile. A host that does not
// read blocks only this goroutine: calls are still stopped at their limits, and their answers are queued without waiting.
func (s *Session) awaitHost(run int, m *jsonrpc.Message) bool {
	s.mu.Lock()
	s.runAnswered = true
	s.prove()
	if s.own[string(m.ID)] != nil && m.IsResponse() {
		defer s.mu.Unlock()
		return run == s.run
	}
	s.unread++
	s.mu.Unlock()
	s.Room()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unread--
	return run == s.run
}

// dispatch handles a message of a run of the server, or each message of a batch.
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
	if in != nil && in.cancelLocal != nil { // the proxy answers this request itself
		in = nil
	}
	if in != nil && in.call == nil {
		s.conclude(asked, in, false)
	}
	late := in == nil && s.isGone(id)
	s.mu.Unlock()
	if in == nil {
		unread := id == "null" // the answer to a message that the server could not read
		if unread || !late {
			s.stray(m)
		}
		if unread {
			s.Deliver(m)
		}
		return
	}
	if asked != id {
		m = m.WithID(asked)
	}
	said := m.Raw
	if m = jsonrpc.Normalize(m); m == nil {
		m = jsonrpc.Failure(json.RawMessage(asked), "the server's answer has neither a result nor an error as the protocol has them: "+jsonrpc.Shorten(string(said)))
	}
	if in.call == nil {
		s.Deliver(s.amend(in.method, m))
		return
	}
	if in.call.serverAnswered.Swap(true) { // answered twice
		s.stray(m)
		return
	}
	in.call.answer <- m
}

// stray logs an answer of the server that belongs to no request. SPEC 8.11.
func (s *Session) stray(m *jsonrpc.Message) {
	s.Logger.Warn("the server sent an answer that belongs to no request", "answer", jsonrpc.Shorten(string(m.Raw)))
}

// failMalformed answers the requests whose ids are in a malformed line of the server, which must have been meant as
// their answers, with an error. SPEC 8.11.
func (s *Session) failMalformed(line []byte) {
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
		if in != nil && in.cancelLocal == nil {
			m.Raw, m.Result, m.Error = item, nil, nil
			s.serverAnswers(m)
		}
	}
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
	late := c == nil && token != "" && s.ended.Has(token)
	s.mu.Unlock()
	switch {
	case late: // dropped: no progress may follow the answer
	case c != nil:
		if !jsonrpc.Same(named, token) { // the server has sent a number as a string, or the reverse
			m = m.With(c.token, "params", "progressToken")
		}
		c.reported(m, params.Progress, params.Total, params.Message)
	default: // the token belongs to another kind of request or to a task, or is unknown
		s.Deliver(m)
	}
}

// maxNoise is the largest number of bytes of a text that noise writes.
const maxNoise = 4 << 10

// NoiseMark begins each line on stderr that repeats a text of the server's stdout that is not a message.
const NoiseMark = "mcpdeadline: no message from the server: "

// noise writes a text of the server's stdout that is not a message to stderr, with "..." in place of what exceeds
// maxNoise, and logs advice once. If output on stderr is a sign of life, the text is one of every request in flight.
func (s *Session) noise(text []byte) {
	shown := text
	if len(text) > maxNoise {
		shown = append(bytes.ToValidUTF8(text[:maxNoise:maxNoise], nil), "..."...)
	}
	fmt.Fprintf(s.Stderr, "%s%s\n", NoiseMark, shown)
	s.advised.Do(func() {
		s.Logger.Warn("the server sends what is no message, and many hosts would end the session then; it should print to stderr", "bytes", len(text))
	})
	if s.Alive.Stderr {
		s.sign(nil)
	}
}
