package mcpsdk

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// WrapClientTransport wraps a transport for a client with FollowTasks among its [request.Options]. The wrapped
// transport declares to the server that the client supports tasks, finds out whether the server supports them, and
// translates messages about tasks into messages that the SDK understands. It changes nothing else. For a
// *mcp.StreamableClientTransport, the result is a copy of t whose HTTPClient has another RoundTripper.
func WrapClientTransport(t mcp.Transport) mcp.Transport {
	s, ok := t.(*mcp.StreamableClientTransport)
	if !ok {
		return &followTransport{t}
	}
	out := *s
	client := http.Client{}
	if s.HTTPClient != nil {
		client = *s.HTTPClient
	}
	client.Transport = &followRoundTripper{base: client.Transport}
	out.HTTPClient = &client
	return &out
}

type followTransport struct{ mcp.Transport }

func (t *followTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &followConnection{Connection: c, waiting: make(map[jsonrpc.ID]expected)}, nil
}

type followConnection struct {
	mcp.Connection
	statuses statusReader
	mu       sync.Mutex
	waiting  map[jsonrpc.ID]expected
}

// takes reports whether a request of the SDK with this method has to be translated. Other messages, such as a
// cancellation, may have the same context.
func (f *followed) takes(method string) bool {
	s := f.now()
	return method == methodCall || s.listening && method == s.method
}

// expected identifies a request whose answer has to be translated. A zero expected means that there is none.
type expected struct {
	call   *followed
	method string
}

func (c *followConnection) Write(ctx context.Context, msg jsonrpc.Message) error {
	f, _ := ctx.Value(followKey{}).(*followed)
	req, ok := msg.(*jsonrpc.Request)
	if f == nil || !ok || !req.IsCall() || !f.takes(req.Method) {
		return c.Connection.Write(ctx, msg)
	}
	f.change(func() { f.reader = &c.statuses })
	method, _, params, err := f.outgoing(req.Params)
	if err != nil {
		return err
	}
	out := *req
	out.Method, out.Params = method, params
	c.mu.Lock()
	c.waiting[req.ID] = expected{f, method}
	c.mu.Unlock()
	// The SDK drops an answer that arrives after the end of ctx.
	context.AfterFunc(ctx, func() {
		c.mu.Lock()
		delete(c.waiting, req.ID)
		c.mu.Unlock()
	})
	return c.Connection.Write(ctx, &out)
}

func (c *followConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(ctx)
	if said, ok := msg.(*jsonrpc.Request); ok && said.Method == methodStatus {
		c.statuses.deliver(said.Params)
	}
	res, ok := msg.(*jsonrpc.Response)
	if err != nil || !ok {
		return msg, err
	}
	c.mu.Lock()
	e, ok := c.waiting[res.ID]
	c.mu.Unlock()
	if !ok || res.Error != nil {
		return msg, nil
	}
	out := *res
	var failed *jsonrpc.Error
	if out.Result, failed = e.call.incoming(e.method, res.Result, nil); failed != nil {
		out.Result, out.Error = nil, failed
	}
	return &out, nil
}

// A followRoundTripper translates requests and answers over HTTP as a followConnection does over other transports.
type followRoundTripper struct {
	base     http.RoundTripper
	statuses statusReader
}

func (t *followRoundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	base := t.base
	if base == nil {
		base = http.DefaultTransport
	}
	f, _ := r.Context().Value(followKey{}).(*followed)
	if f == nil || r.Method != http.MethodPost || r.Body == nil {
		var e expected
		if f != nil && r.Method == http.MethodGet && r.Header.Get("Last-Event-Id") != "" {
			e = expected{f, f.now().method} // the SDK fetches the rest of an answer that was cut off
		}
		res, err := base.RoundTrip(r)
		return t.watched(res, err, e)
	}
	f.change(func() { f.reader = &t.statuses })
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		return nil, err
	}
	var msg map[string]json.RawMessage
	if err := json.Unmarshal(body, &msg); err != nil {
		return nil, err
	}
	var sent string
	if _ = json.Unmarshal(msg["method"], &sent); !f.takes(sent) || msg["id"] == nil {
		out := r.Clone(r.Context())
		out.Body = io.NopCloser(bytes.NewReader(body))
		return base.RoundTrip(out)
	}
	method, id, params, err := f.outgoing(msg["params"])
	if err != nil {
		return nil, err
	}
	msg["params"] = params
	if msg["method"], err = json.Marshal(method); err != nil {
		return nil, err
	}
	if body, err = json.Marshal(msg); err != nil {
		return nil, err
	}
	out := r.Clone(r.Context())
	if method != sent && out.Header.Get("Mcp-Method") != "" {
		for name := range out.Header {
			if len(name) > len(paramHeader) && name[:len(paramHeader)] == paramHeader {
				delete(out.Header, name) // describes an argument of the tool
			}
		}
		out.Header.Set("Mcp-Method", method)
		out.Header.Set("Mcp-Name", id)
	}
	out.Body = io.NopCloser(bytes.NewReader(body))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	out.ContentLength = int64(len(body))
	res, err := base.RoundTrip(out)
	if err == nil {
		f.change(func() { f.denied = res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden })
	}
	return t.watched(res, err, expected{f, method})
}

// watched returns a response whose body is translated while it is read: the answer by e, if e has a call. Status
// notifications in it are delivered. An error is returned unchanged.
func (t *followRoundTripper) watched(res *http.Response, err error, e expected) (*http.Response, error) {
	if err != nil || res.Body == nil {
		return res, err
	}
	switch kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind {
	case "application/json":
		if e.call == nil {
			break
		}
		data, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil {
			return nil, err
		}
		data, _ = e.translate(data)
		res.Body = io.NopCloser(bytes.NewReader(data))
		res.ContentLength = int64(len(data))
		res.Header.Del("Content-Length")
	case "text/event-stream":
		res.Body = &followStream{Closer: res.Body, from: bufio.NewReader(res.Body), to: e, statuses: &t.statuses}
		res.ContentLength = -1
		res.Header.Del("Content-Length")
	}
	return res, nil
}

const paramHeader = "Mcp-Param-"

// translate returns a message with its result translated for the SDK. It returns a message without a result unchanged.
// answer reports whether the message is a response, with a result or an error.
func (e expected) translate(message []byte) (out []byte, answer bool) {
	var msg map[string]json.RawMessage
	if adapter.Unmarshal(message, &msg) != nil || msg["method"] != nil {
		return message, false
	}
	if msg["result"] == nil {
		return message, msg["error"] != nil
	}
	result, failed := e.call.incoming(e.method, msg["result"], nil)
	delete(msg, "result")
	if failed == nil {
		msg["result"] = result
	} else if data, err := json.Marshal(failed); err == nil {
		msg["error"] = data
	}
	out, err := json.Marshal(msg)
	if err != nil {
		return message, true
	}
	return out, true
}

// A followStream is the body of a stream of events. Read translates the answer in it.
type followStream struct {
	io.Closer
	from     *bufio.Reader
	to       expected
	statuses *statusReader
	line     []byte // the rest of the newest line, which Read has not returned yet
	err      error

	answered bool
}

func (s *followStream) Read(p []byte) (int, error) {
	if len(s.line) == 0 && s.err == nil && len(p) > 0 {
		s.line, s.err = s.from.ReadBytes('\n')
		if data, ok := bytes.CutPrefix(s.line, []byte("data:")); ok {
			text := bytes.TrimSpace(data)
			s.statuses.read(text)
			if s.to.call != nil {
				out, answer := s.to.translate(text)
				if s.answered = s.answered || answer; !bytes.Equal(out, text) {
					s.line = append(append([]byte("data: "), out...), '\n')
				}
			}
		}
		if s.err != nil && !s.answered && s.to.call != nil {
			s.to.call.change(func() { s.to.call.cut = true }) // the SDK's error does not show this cause
		}
	}
	if len(s.line) > 0 {
		n := copy(p, s.line)
		s.line = s.line[n:]
		return n, nil
	}
	if len(p) == 0 {
		return 0, nil
	}
	return 0, s.err
}
