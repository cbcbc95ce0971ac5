package remote

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
)

// A remote is a run of a server at a URL, over Streamable HTTP. The run is one session at the server, unless the
// protocol is 2026-07-28 or later, which has no sessions.
type remote struct {
	server.Receiver
	handover *handover // shared with earlier and later runs
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

	trials  singleflight.Group // for try
	streams atomic.Int64       // number of open streams that answer messages

	mu         sync.Mutex
	session    string
	version    string
	proved     bool                // the server has answered a request of this session
	initialize *jsonrpc.Message    // the request that began the session
	open       map[string]*posting // requests without an answer, by id
	forgotten  bool                // the server no longer knows the session, and no more messages are sent
	closing    bool                // Close has been called, and no session is begun any more
	beginning  sync.WaitGroup      // sessions that are being begun
	pending    sync.WaitGroup      // exchanges in which the server may still refuse the session
	givenUp    jsonrpc.Recent      // ids of requests that were cancelled, or have ended without an answer
}

// A posting is a message that is being sent, or a request that waits for its answer.
type posting struct {
	m       *jsonrpc.Message
	cancel  context.CancelFunc
	written chan struct{} // closed when the next message may be sent; see exchange.settled
	late    *time.Timer   // closes the stream of a cancelled request; nil if not cancelled
}

// An exchange is the POST of one message and its response. SPEC 8.11: an answer in the response belongs to the message,
// even if its id is wrong, unless its id is that of another request. A response without a valid answer fails the
// message at once.
type exchange struct {
	*remote
	m              *jsonrpc.Message
	settled        func()    // to be called when the next message may be sent
	over           sync.Once // for answered
	status         string    // the status of the response, with its content type
	code           int       // the status code of the response
	auth           bool      // the response has a WWW-Authenticate header
	session        string    // the session id that m was sent with or, for initialize, that the server has answered with
	resumed        bool      // the stream was resumed, and may contain messages of other requests
	lastNonMessage string    // the last received text that is not a valid message
}

// isOpen reports whether the message of the exchange is a request without an answer.
func (e *exchange) isOpen() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open[string(e.m.ID)] != nil
}

// newestWithSessions is the newest version of the protocol that has sessions.
const newestWithSessions = "2025-11-25"

// request returns an HTTP request to the server with m, if it is not nil, as its body, and with the headers of the
// protocol and of the user.
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

// abandonRequest removes a request from open, so that an answer that arrives later is dropped. The caller holds u.mu.
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

// current returns the id of the session of the run, or "" if it has none.
func (u *remote) current() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.session
}
