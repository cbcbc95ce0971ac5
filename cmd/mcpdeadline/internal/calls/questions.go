package calls

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// MaxQuestions is the largest number of requests of the server that may wait for an answer of the host.
const MaxQuestions = 1000

// renamed returns the id under which a request of the server is sent to the host. Requests of the first run keep their
// ids. A later run may use the same ids again, while the host still handles requests of an earlier run.
func renamed(run int, id json.RawMessage) json.RawMessage {
	if run == 1 {
		return id
	}
	return jsonrpc.Encode(fmt.Sprintf("run %d: %s", run, id))
}

// original is the reverse of renamed. The bool is false if the id belongs to another run.
func original(run int, id json.RawMessage) (json.RawMessage, bool) {
	var text string
	if json.Unmarshal(id, &text) == nil {
		if of, name, found := strings.Cut(strings.TrimPrefix(text, "run "), ": "); found && strings.HasPrefix(text, "run ") {
			return json.RawMessage(name), of == strconv.Itoa(run)
		}
	}
	return id, run == 1
}

// serverAsks forwards a request of the server, or answers it with an error if MaxQuestions others wait for the host.
// Before the error it waits until the server has read most of what is queued, because a server may ask without reading.
func (s *Session) serverAsks(run int, m *jsonrpc.Message) {
	var holds []func()
	switch m.Method {
	case "elicitation/create", "sampling/createMessage", "roots/list":
		for _, p := range s.pulsesOf(m) {
			p.Beat(nil)
			holds = append(holds, p.Hold())
		}
	}
	answered := func() {
		for _, release := range holds {
			release()
		}
	}
	id := renamed(run, m.ID)
	s.mu.Lock()
	up, earlier := s.up, s.hostQuestions[string(id)]
	if run != s.run || up == nil { // the run has ended
		s.mu.Unlock()
		answered()
		return
	}
	full := earlier == nil && len(s.hostQuestions) >= MaxQuestions
	if !full {
		s.hostQuestions[string(id)] = answered
	}
	s.mu.Unlock()
	if earlier != nil { // the server has used the id twice
		earlier()
	}
	if full {
		answered()
		s.crowded.Do(func() {
			s.Logger.Warn("the server sends too many requests, and gets errors for those above the bound", "unanswered", MaxQuestions)
		})
		up.Await()
		up.Send(jsonrpc.Failure(m.ID, fmt.Sprintf("mcpdeadline: %d other requests wait for the host", MaxQuestions)))
		return
	}
	if run != 1 {
		m = m.With(id, "id")
	}
	s.Deliver(m)
}

// hostAnswers forwards the host's answer to a request of the server, or drops it if the run that has sent the request
// has ended.
func (s *Session) hostAnswers(m *jsonrpc.Message) {
	s.mu.Lock()
	asked, answered := jsonrpc.FindAlike(s.hostQuestions, string(m.ID))
	delete(s.hostQuestions, asked)
	id, current := original(s.run, json.RawMessage(asked))
	if answered == nil || !current || s.up == nil {
		s.mu.Unlock()
		return
	}
	if !bytes.Equal(id, m.ID) {
		m = m.WithID(string(id))
	}
	up := s.up
	s.mu.Unlock()
	// The answer is sent even if the run is not ready: the server may have sent the request before it answers
	// initialize.
	up.Send(m)
	answered()
}

func (s *Session) serverCancels(run int, m *jsonrpc.Message) {
	var params struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	_ = adapter.Unmarshal(m.Params, &params)
	id := renamed(run, params.RequestID)
	s.mu.Lock()
	asked, answered := jsonrpc.FindAlike(s.hostQuestions, string(id))
	delete(s.hostQuestions, asked)
	s.mu.Unlock()
	if answered != nil {
		answered()
		if asked != string(params.RequestID) {
			m = m.With(json.RawMessage(asked), "params", "requestId")
		}
	}
	s.Deliver(m)
}

// cancelQuestions cancels the requests of the server to the host, because the run has ended.
func (s *Session) cancelQuestions() {
	s.mu.Lock()
	s.up = nil // so that serverAsks adds none
	asked := s.hostQuestions
	s.hostQuestions = make(map[string]func())
	s.mu.Unlock()
	for id, answered := range asked {
		answered()
		s.Deliver(jsonrpc.Notification("notifications/cancelled", map[string]any{"requestId": json.RawMessage(id), "reason": "the server ended"}))
	}
}
