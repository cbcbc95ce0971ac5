package calls

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

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
		s.failMalformed(text)
		return
	}
	if !s.awaitHost(run) {
		return
	}
	s.dispatch(run, m)
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

// awaitHost records that a run of the server has a message, and waits until the host has room for it. It reports
// false if the run has ended meanwhile. A host that does not read holds up only the server. The answer of a call that
// is stopped meanwhile is queued behind the messages that wait.
func (s *Session) awaitHost(run int) bool {
	s.mu.Lock()
	s.runAnswered = true
	s.prove()
	s.unread++
	s.mu.Unlock()
	s.Room()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unread--
	return run == s.run
}

// dispatch passes on a message of a run of the server, or the messages of a batch one by one.
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
	if in != nil && in.cancelLocal != nil { // the server has not been asked
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
		m = jsonrpc.Failure(json.RawMessage(asked), "the server's answer has neither a result nor an error as the protocol has them: "+jsonrpc.Shorten(string(m.Raw)))
	} else {
		m = jsonrpc.Normalize(m)
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

// stray logs an answer that belongs to no request. SPEC 8.11.
func (s *Session) stray(m *jsonrpc.Message) {
	s.Logger.Warn("the server sent an answer that belongs to no request", "answer", jsonrpc.Shorten(string(m.Raw)))
}

// failMalformed fails the request that a malformed line was meant to answer. SPEC 8.11.
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
	case late: // nothing follows the answer
	case c != nil:
		if !jsonrpc.Same(named, token) { // as the host knows it
			m = m.With(c.token, "params", "progressToken")
		}
		c.reported(m, params.Progress, params.Total, params.Message)
	default: // about another request, or a task
		s.Deliver(m)
	}
}

// maxNoise bounds what is shown of a line of a server that is not a message.
const maxNoise = 4 << 10

// NoiseMark begins each line on stderr that the server has sent and that is not a message.
const NoiseMark = "mcpdeadline: no message from the server: "

// noise writes a text that is not a message to stderr, and advises once what to do about it. The text counts as
// output on stderr.
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
