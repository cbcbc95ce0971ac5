package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
	"github.com/tooldeadline/tooldeadline/stream"
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
	proved     bool                // the server has accepted a message of this session
	initialize *jsonrpc.Message    // the request that began it
	open       map[string]*posting // requests without an answer, by id
	streams    int                 // exchanges whose answers are streams that are open
	forgotten  bool                // the server no longer knows the session; nothing is sent any more
	pending    sync.WaitGroup      // exchanges in which the server may yet say so
	givenUp    [64]string          // ids of the requests that were cancelled, or have ended without an answer, last
	given      int
}

// A posting is a request that is being sent, or waits for its answer.
type posting struct {
	m       *jsonrpc.Message
	cancel  context.CancelFunc
	written chan struct{} // closed when the server may have the whole of it
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

// newestWithSessions is the last revision of the protocol that has sessions.
const newestWithSessions = "2025-11-25"

// OrderLimit is how long the next message waits until the server has read a request, or accepted a notification.
const OrderLimit = 10 * time.Second

// Dial returns what gives each session with a server at a URL its dialer. A message has most bytes. The first message of a
// run makes the connection.
func Dial(transport http.RoundTripper, to *url.URL, header http.Header, most int) func() server.Dialer {
	client := &http.Client{
		Transport:     &stream.Notifications{Base: transport, Name: "notifications"},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // see do
	}
	return func() server.Dialer {
		h := new(handover)
		return func(r server.Receiver) (server.Run, error) {
			u := &remote{
				Receiver: r, handover: h, url: to, header: header, client: client, max: most, begun: time.Now(),
				queue: jsonrpc.NewMailbox(), over: make(chan struct{}), open: make(map[string]*posting),
			}
			u.ctx, u.stop = context.WithCancelCause(context.Background())
			u.posts.Add(1)
			go u.postAll()
			go func() {
				<-u.ctx.Done()
				u.unsendAll()
				u.posts.Wait()
				close(u.over)
			}()
			return u, nil
		}
	}
}

func (u *remote) Send(m *jsonrpc.Message) {
	u.gives(m)
	if !u.queue.Put(m, 0) {
		u.missed(m)
	}
}

func (u *remote) Await()                       { u.queue.Await(jsonrpc.QueueOf(u.max)) }
func (u *remote) Kill(why error)               { u.stop(why) }
func (u *remote) Ended() <-chan struct{}       { return u.over }
func (u *remote) Why() error                   { return context.Cause(u.ctx) }
func (u *remote) Processes() server.Observable { return nil }

// close ends the session at the server.
func (u *remote) Close() {
	u.mu.Lock()
	session := u.session
	u.mu.Unlock()
	if session != "" {
		ctx, cancel := context.WithTimeout(u.ctx, server.CloseLimit)
		defer cancel()
		if res, err := u.do(ctx, http.MethodDelete, nil, nil); err == nil {
			res.Body.Close()
		}
	}
	u.stop(errors.New("mcpdeadline is shutting down"))
	<-u.over
}

// postAll sends the messages in order. It waits until a request has been written, or a notification
// accepted, before it sends the next message, but not for a server that does not accept one.
func (u *remote) postAll() {
	defer u.posts.Done()
	for {
		select {
		case <-u.queue.More:
		case <-u.ctx.Done():
			return
		}
		m := u.queue.Next()
		u.queue.Sent() // it is no longer waited for
		if m == nil || u.closes(m) || u.adopts(m) {
			continue
		}
		e := &exchange{remote: u, m: m}
		if !e.begin() {
			continue
		}
		ctx, cancel := context.WithCancel(u.ctx)
		sent := &posting{m, cancel, make(chan struct{})}
		e.settled = sync.OnceFunc(func() { close(sent.written) })
		late := time.NewTimer(OrderLimit)
		switch {
		case !m.IsRequest():
		case m.Method == "initialize": // its answer has the session id, which later requests need
			late.Reset(server.InitLimit)
		default:
			ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { e.settled() }})
		}
		if m.IsRequest() {
			u.mu.Lock()
			u.open[string(m.ID)] = sent
			u.mu.Unlock()
		}
		u.posts.Add(1)
		go func() {
			defer u.posts.Done()
			defer e.settled()
			defer e.answered()
			defer u.giveUp(m)
			defer cancel()
			e.post(ctx)
		}()
		select {
		case <-sent.written:
		case <-late.C:
		case <-u.ctx.Done():
		}
		late.Stop()
	}
}

// gives ends the exchange of a request that a message cancels, if the server has not read it: later messages
// wait for it.
func (u *remote) gives(m *jsonrpc.Message) {
	id := jsonrpc.Cancels(m)
	if id == "" {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.forgetAnswer(id) // even if one has just come on the stream of another request: another may follow
	if sent := u.open[id]; sent != nil && !sent.isWritten() && sent.m.Method != "initialize" {
		sent.cancel()
	}
}

// closes cancels a request by closing its stream, as 2026-07-28 requires. It reports false if m has to
// be sent as a message instead.
func (u *remote) closes(m *jsonrpc.Message) bool {
	id := jsonrpc.Cancels(m)
	if id == "" {
		return m.Method == "notifications/cancelled" && u.version == ""
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	sent := u.open[id]
	if u.version != "" || sent == nil {
		return u.version == ""
	}
	u.forgoes(id)
	sent.cancel()
	return true
}

// forgoes notes that a request gets no answer any more. The caller holds u.mu.
func (u *remote) forgoes(id string) {
	if u.open[id] != nil {
		delete(u.open, id)
		u.forgetAnswer(id)
	}
}

// forgetAnswer notes that an answer with this id is no other request's. The caller holds u.mu.
func (u *remote) forgetAnswer(id string) {
	if slices.Contains(u.givenUp[:], id) { // cancelled, and now its exchange has ended
		return
	}
	u.givenUp[u.given] = id
	u.given = (u.given + 1) % len(u.givenUp)
}

// giveUp is called at the end of the exchange of m.
func (u *remote) giveUp(m *jsonrpc.Message) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if m.IsRequest() {
		u.forgoes(string(m.ID))
	}
}

// request returns a request with the headers that all requests have.
func (u *remote) request(ctx context.Context, method string, to *url.URL, m *jsonrpc.Message) (*http.Request, error) {
	var body io.Reader
	if m != nil {
		body = bytes.NewReader(m.Raw)
	}
	r, err := http.NewRequestWithContext(ctx, method, to.String(), body)
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
