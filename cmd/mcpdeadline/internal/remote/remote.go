package remote

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
)

// A remote is a server at a URL, over Streamable HTTP: one session, if the protocol has sessions.
// With 2026-07-28 each request stands alone.
type remote struct {
	server.Receiver
	handover *handover // between a run and the next one
	url      *url.URL
	header   http.Header
	client   *http.Client
	max      int // largest message, in bytes
	begun    time.Time

	ctx   context.Context
	stop  context.CancelCauseFunc
	queue *jsonrpc.Mailbox
	over  chan struct{}
	posts sync.WaitGroup

	renewing sync.Mutex // held while a new session is tried

	mu         sync.Mutex
	session    string
	version    string
	proved     bool                // the server has answered a request of this session
	initialize *jsonrpc.Message    // the request that began the session
	open       map[string]*posting // requests without an answer, by id
	streams    int                 // exchanges whose answers are streams that are open
	forgotten  bool                // the server no longer knows the session; nothing is sent any more
	pending    sync.WaitGroup      // exchanges in which the server may yet say that it does not know the session
	givenUp    jsonrpc.Recent      // ids of the requests that were cancelled, or have ended without an answer
}

// A posting is a request that is being sent, or waits for its answer.
type posting struct {
	m       *jsonrpc.Message
	cancel  context.CancelFunc
	written chan struct{} // closed when the server may have the whole of it
	late    *time.Timer   // ends the request, once it has been cancelled; nil before
}

// isWritten reports whether the server may have the whole request.
func (p *posting) isWritten() bool {
	select {
	case <-p.written:
		return true
	default:
		return false
	}
}

// An exchange is the POST of one message, and what the server sends for it. SPEC 8.11: an answer that the
// server sends there belongs to the message, whatever id it carries, unless it carries that of another
// request. What is not an answer fails the message at once.
type exchange struct {
	*remote
	m              *jsonrpc.Message
	settled        func() // the next message may be sent
	over           sync.Once
	status         string // of the response, with its content type
	code           int
	auth           bool   // the response asks for credentials
	session        string // the session id that m was sent with
	resumed        bool   // the stream is one that was opened again, which may repeat what belongs to other requests
	lastNonMessage string // the last thing that came and is not a message
}

func (e *exchange) isOpen() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open[string(e.m.ID)] != nil
}

// newestWithSessions is the last revision of the protocol that has sessions.
const newestWithSessions = "2025-11-25"

// request returns a request with the headers that all requests have.
func (u *remote) request(ctx context.Context, method string, m *jsonrpc.Message) (*http.Request, error) {
	var body io.Reader
	if m != nil {
		body = bytes.NewReader(m.Raw)
	}
	r, err := http.NewRequestWithContext(ctx, method, u.url.String(), body)
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	session, version := u.session, u.version
	u.mu.Unlock()
	if m != nil && m.Method == "initialize" {
		session, version = "", ""
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	if m != nil {
		r.Header.Set("Content-Type", "application/json")
		if alone, name := jsonrpc.StandsAlone(m); alone != "" {
			version = alone
			r.Header.Set("Mcp-Method", m.Method)
			if name != "" {
				r.Header.Set("Mcp-Name", name)
			}
		}
	} else {
		r.Header.Set("Accept", "text/event-stream")
	}
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	if version != "" {
		r.Header.Set("Mcp-Protocol-Version", version)
	}
	for name, values := range u.header {
		r.Header[name] = values
	}
	return r, nil
}

// abandonRequest records that a request gets no answer any more. The caller holds u.mu.
func (u *remote) abandonRequest(id string) {
	if u.open[id] != nil {
		delete(u.open, id)
		u.givenUp.Add(id)
	}
}

func (u *remote) isForgotten() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.forgotten
}
