package front

import (
	"encoding/json"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// route queues a message on the response that it belongs to. It waits for no client.
func (s *session) route(m *jsonrpc.Message) {
	s.streams.Lock()
	defer s.streams.Unlock()
	if m.IsResponse() {
		if st := s.open[string(m.ID)]; st != nil { // otherwise the client has gone
			st.Put(m, 0)
			s.bound()
		}
		return
	}
	switch st := s.streamOf(m); {
	case st == nil && s.id == "":
		if m.IsRequest() {
			go s.take(jsonrpc.Failure(m.ID, "no request is open that this could belong to"))
		}
	case st == nil, st == s.get:
		if !s.pending.Put(m, MaxUnsent) && m.IsRequest() { // the server waits for the answer
			go s.take(jsonrpc.Failure(m.ID, "the client does not read what it is sent"))
		}
	case m.IsRequest(): // the server waits for the answer
		st.Put(m, 0)
		s.bound()
	default:
		st.Put(m, maxAnswers)
		s.bound()
	}
}

func (s *session) bound() {
	if s.audience.bound() {
		s.Logger.Warn("clients that do not read their answers were cut off")
	}
}

// streamOf returns the response for a message that is not an answer, or nil. The caller holds s.streams.
func (s *session) streamOf(m *jsonrpc.Message) *downstream {
	if st := s.open[m.About]; m.About != "" && st != nil {
		return st
	}
	if s.id == "" {
		return s.namedIn(m)
	}
	// A server over stdio does not say which call a message is about. If only one call is open, it is
	// that one.
	var calls []*downstream
	for _, st := range s.open {
		if st.call {
			calls = append(calls, st)
		}
	}
	switch {
	case len(calls) == 1:
		return calls[0]
	case s.get != nil:
		return s.get
	default:
		for _, st := range s.open {
			return st
		}
	}
	return nil
}

// namedIn returns the response to the request that stands alone whose progress or subscription m is about, or
// nil. Everything else may be about the request of another client, also of one that has gone. The caller holds
// s.streams.
func (s *session) namedIn(m *jsonrpc.Message) *downstream {
	if m.About != "" {
		return nil // its client has gone
	}
	var params struct {
		ProgressToken json.RawMessage
		Meta          map[string]json.RawMessage `json:"_meta"`
	}
	_ = adapter.Unmarshal(m.Params, &params)
	for _, name := range []json.RawMessage{params.ProgressToken, params.Meta[subscriptionKey]} {
		if st := s.open[string(name)]; st != nil {
			return st
		}
	}
	return nil
}
