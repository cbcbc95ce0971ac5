package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"sync"

	"github.com/tooldeadline/tooldeadline/stream"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A remote is a server at a URL, over Streamable HTTP: one session, if the protocol has sessions.
// With 2026-07-28 each request stands alone.
type remote struct {
	receiver
	url    string
	header http.Header
	client *http.Client
	max    int // largest message, in bytes

	ctx   context.Context
	stop  context.CancelCauseFunc
	queue chan *message
	over  chan struct{}
	posts sync.WaitGroup

	mu      sync.Mutex
	session string
	version string
	open    map[string]context.CancelFunc // requests without an answer, by id
}

// newestWithSessions is the last revision of the protocol that has sessions.
const newestWithSessions = "2025-11-25"

// dialURL returns a dialer for a server at a URL. The first message makes the connection.
func dialURL(to *url.URL, header http.Header, maxMessage int) dialer {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	client := &http.Client{Transport: &stream.Notifications{Base: transport, Options: []timeout.Option{timeout.WithName("notifications")}}}
	return func(r receiver) (upstream, error) {
		u := &remote{
			receiver: r, url: to.String(), header: header, client: client, max: maxMessage,
			queue: make(chan *message, 1024), over: make(chan struct{}), open: make(map[string]context.CancelFunc),
		}
		u.ctx, u.stop = context.WithCancelCause(context.Background())
		u.posts.Add(1)
		go u.postAll()
		go func() {
			<-u.ctx.Done()
			u.posts.Wait()
			close(u.over)
		}()
		return u, nil
	}
}

func (u *remote) send(m *message) {
	select {
	case u.queue <- m:
	case <-u.ctx.Done():
	}
}

func (u *remote) await()                 {}
func (u *remote) kill(why error)         { u.stop(why) }
func (u *remote) ended() <-chan struct{} { return u.over }
func (u *remote) why() error             { return context.Cause(u.ctx) }
func (u *remote) process() *os.Process   { return nil }

// close ends the session at the server.
func (u *remote) close() {
	u.mu.Lock()
	session := u.session
	u.mu.Unlock()
	if session != "" {
		ctx, cancel := context.WithTimeout(u.ctx, closeLimit)
		defer cancel()
		if r, err := u.request(ctx, http.MethodDelete, nil); err == nil {
			if res, err := u.client.Do(r); err == nil {
				res.Body.Close()
			}
		}
	}
	u.stop(errors.New("mcpdeadline is shutting down"))
	<-u.over
}

// postAll sends the messages in order. It waits until a request has been written, or a notification
// accepted, before it sends the next message.
func (u *remote) postAll() {
	defer u.posts.Done()
	for {
		var m *message
		select {
		case m = <-u.queue:
		case <-u.ctx.Done():
			return
		}
		if u.closes(m) {
			continue
		}
		ctx, cancel := context.WithCancel(u.ctx)
		written := make(chan struct{})
		var once sync.Once
		done := func() { once.Do(func() { close(written) }) }
		if m.isRequest() {
			u.mu.Lock()
			u.open[string(m.ID)] = cancel
			u.mu.Unlock()
			if m.Method != "initialize" { // its answer has the session id, which later requests need
				ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { done() }})
			}
		}
		u.posts.Add(1)
		go func() {
			defer u.posts.Done()
			defer done()
			defer cancel()
			u.post(ctx, m)
		}()
		select {
		case <-written:
		case <-u.ctx.Done():
			return
		}
	}
}

// closes cancels a request by closing its stream, as 2026-07-28 requires. It reports false if m has to
// be sent as a message instead.
func (u *remote) closes(m *message) bool {
	if m.Method != "notifications/cancelled" {
		return false
	}
	var params struct{ RequestID json.RawMessage }
	_ = json.Unmarshal(m.Params, &params)
	u.mu.Lock()
	defer u.mu.Unlock()
	cancel := u.open[string(params.RequestID)]
	if u.version != "" || cancel == nil {
		return u.version == ""
	}
	delete(u.open, string(params.RequestID))
	cancel()
	return true
}

// request returns a request with the headers that all requests have.
func (u *remote) request(ctx context.Context, method string, m *message) (*http.Request, error) {
	var body io.Reader
	if m != nil {
		body = bytes.NewReader(m.raw)
	}
	r, err := http.NewRequestWithContext(ctx, method, u.url, body)
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	session, version := u.session, u.version
	u.mu.Unlock()
	r.Header.Set("Accept", "application/json, text/event-stream")
	if m != nil {
		r.Header.Set("Content-Type", "application/json")
		if alone, name := standsAlone(m); alone != "" {
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

// standsAlone returns the protocol version that a message states, as messages do from 2026-07-28 on,
// and the name of what the message is about.
func standsAlone(m *message) (version, name string) {
	var params struct {
		Name, URI, TaskID string
		Meta              struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &params)
	switch m.Method {
	case "resources/read":
		name = params.URI
	case "tasks/get", "tasks/update", "tasks/cancel":
		name = params.TaskID
	default:
		name = params.Name
	}
	return params.Meta.Version, name
}

// post sends one message and passes on the answer.
func (u *remote) post(ctx context.Context, m *message) {
	res, err := u.do(ctx, http.MethodPost, m)
	if err != nil {
		u.fail(ctx, m, err)
		return
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusNotFound && res.Request.Header.Get("Mcp-Session-Id") != "":
		if m.isRequest() {
			u.unsent(m)
		}
		u.stop(errors.New("the server no longer knows the session"))
		return
	case isEvents(res):
		u.follow(ctx, m, res)
		return
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, int64(u.max)+1))
	switch {
	case err != nil:
		u.fail(ctx, m, err)
	case len(body) > u.max:
		u.fail(ctx, m, fmt.Errorf("the answer exceeds %d bytes", u.max))
	case !m.isRequest() && res.StatusCode < 300:
		u.accepted(m)
	case !u.took(m, res, body):
		u.fail(ctx, m, fmt.Errorf("%s: %s", res.Status, short(bytes.TrimSpace(body))))
	}
}

// isEvents reports whether the body of a response is a stream of events.
func isEvents(res *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return kind == "text/event-stream" && res.StatusCode == http.StatusOK
}

func (u *remote) do(ctx context.Context, method string, m *message) (*http.Response, error) {
	r, err := u.request(ctx, method, m)
	if err != nil {
		return nil, err
	}
	return u.client.Do(r)
}

// took passes on a message. It reports false if body is no message.
func (u *remote) took(to *message, res *http.Response, body []byte) bool {
	var line bytes.Buffer
	if json.Compact(&line, body) != nil || line.Len() == 0 {
		return false
	}
	m := readMessage(line.Bytes())
	if m.ID == nil && m.Method == "" {
		return line.Bytes()[0] == '[' && u.pass(m, to) // a batch
	}
	if m.Error != nil && string(m.ID) == "null" && to.isRequest() {
		m = readMessage(with(m.raw, to.ID, "id")) // the server could not read the id
	}
	if m.isResponse() && to.Method == "initialize" && string(m.ID) == string(to.ID) {
		var result struct{ ProtocolVersion string }
		_ = json.Unmarshal(m.Result, &result)
		u.mu.Lock()
		u.session, u.version = res.Header.Get("Mcp-Session-Id"), result.ProtocolVersion
		u.mu.Unlock()
	}
	return u.pass(m, to)
}

func (u *remote) pass(m, to *message) bool {
	if m.isResponse() {
		u.mu.Lock()
		delete(u.open, string(m.ID))
		u.mu.Unlock()
	}
	if to.isRequest() {
		m.about = string(to.ID)
	}
	u.message(m)
	return true
}

// fail answers a request with an error, unless it has been answered or cancelled.
func (u *remote) fail(ctx context.Context, m *message, err error) {
	if !m.isRequest() || ctx.Err() != nil {
		return // cancelled, or the run is over
	}
	u.mu.Lock()
	_, open := u.open[string(m.ID)]
	u.mu.Unlock()
	if open {
		u.pass(failure(m.ID, "mcpdeadline: "+err.Error()), m)
	}
}

// accepted is called when the server has accepted a notification or a response.
func (u *remote) accepted(m *message) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if m.Method == "notifications/initialized" && u.version <= newestWithSessions && u.version >= "2025-03-26" {
		u.posts.Add(1)
		go u.listen()
	}
}
