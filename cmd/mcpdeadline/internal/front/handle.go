package front

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

func (f *Front) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		f.post(rw, r)
	case http.MethodGet:
		if s := f.sessionOf(rw, r); s != nil {
			s.listen(rw, r)
		}
	case http.MethodDelete:
		if s := f.sessionOf(rw, r); s != nil {
			f.forget(s)
			s.stop()
			rw.WriteHeader(http.StatusNoContent)
		}
	default:
		rw.Header().Set("Allow", "GET, POST, DELETE")
		http.Error(rw, "want GET, POST or DELETE", http.StatusMethodNotAllowed)
	}
}

func (f *Front) post(rw http.ResponseWriter, r *http.Request) {
	line, give, ok := f.body(rw, r)
	defer give()
	if !ok {
		return
	}
	m := jsonrpc.Parse(line)
	if !m.IsRequest() && !m.IsNotification() && !m.IsResponse() {
		code, text := jsonrpc.InvalidRequest, "want one JSON-RPC message"
		if err := json.Unmarshal(line, new(json.RawMessage)); err != nil {
			code, text = jsonrpc.ParseError, err.Error()
		}
		refuse(rw, http.StatusBadRequest, nil, code, text)
		return
	}
	version, _ := jsonrpc.StandsAlone(m)
	var s *session
	switch {
	case version >= "2026-07-28" || r.Header.Get("Mcp-Protocol-Version") >= "2026-07-28":
		if s = f.together(); s == nil {
			refuse(rw, http.StatusServiceUnavailable, m.ID, jsonrpc.InternalError, "mcpdeadline is shutting down")
			return
		}
	case m.Method == "initialize":
		if s = f.begin(r.Context(), rand.Text()); s == nil {
			rw.Header().Set("Retry-After", "10")
			refuse(rw, http.StatusServiceUnavailable, m.ID, jsonrpc.InternalError, fmt.Sprintf("there are %d sessions, and all of them are in use", MaxSessions))
			return
		}
		rw.Header().Set("Mcp-Session-Id", s.id)
	default:
		if s = f.sessionOf(rw, r); s == nil {
			return
		}
	}
	if !m.IsRequest() {
		if s.id != "" { // without a session, a notification or an answer belongs to no request
			s.take(m)
		}
		rw.WriteHeader(http.StatusAccepted)
		return
	}
	s.answer(rw, r, m, give)
}

// sessionOf returns the session in the header of a request. If there is none, it answers the request with an error and
// returns nil.
func (f *Front) sessionOf(rw http.ResponseWriter, r *http.Request) *session {
	if r.Header.Get("Mcp-Session-Id") == "" {
		refuse(rw, http.StatusBadRequest, nil, jsonrpc.InvalidRequest, "want an Mcp-Session-Id")
		return nil
	}
	s := f.known(r)
	if s == nil {
		refuse(rw, http.StatusNotFound, nil, jsonrpc.InvalidRequest, "no such session")
	}
	return s
}
