package front

import (
	"encoding/json"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// route queues a message of the proxy on the response that it belongs to, and does not wait for the client.
func (s *session) route(m *jsonrpc.Message) {
	s.streams.Lock()
	defer s.streams.Unlock()
	if m.IsResponse() {
		if st := s.open[string(m.ID)]; st != nil { // otherwise the client has disconnected
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
		if !s.pending.Put(m, MaxUnsent) && m.IsRequest() { // the server needs an answer
			go s.take(jsonrpc.Failure(m.ID, "the client does not read what it is sent"))
		}
	case m.IsRequest(): // not bounded by maxAnswers, because the server needs an answer
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

// streamOf returns the response on which to send m, which is not an answer, or nil if there is none. The caller holds
// s.streams.
func (s *session) streamOf(m *jsonrpc.Message) *downstream {
	if st := s.open[m.About]; m.About != "" && st != nil {
		return st
	}
	if s.id == "" {
		return s.namedIn(m)
	}
	// A server over stdio does not say to which call a message belongs. If one call is open, the message is sent on its
	// response.
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

// namedIn returns the response to the request whose progress token or subscription is in m, or nil. It is for requests
// without a session, which come from many clients: any other message might belong to another client. The caller holds
// s.streams.
func (s *session) namedIn(m *jsonrpc.Message) *downstream {
	if m.About != "" {
		return nil // the client of that request has disconnected
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
