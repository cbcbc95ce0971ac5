package remote

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/stream"
)

const (
	maxSaid   = 4 << 10         // bytes that are read of an answer that is no message
	TextLimit = 2 * time.Second // how long the rest of such an answer may take

	acceptLimit = time.Minute // how long the server may take to accept what needs no answer
)

// An exchange is the POST of one message, and what the server sends for it. SPEC 8.11: an answer that the
// server sends there belongs to the message, whatever id it carries, unless it carries that of another
// request. What is no answer fails the message at once.
type exchange struct {
	*remote
	m       *jsonrpc.Message
	settled func() // the next message may be sent
	over    sync.Once
	status  string // of the response, with its content type
	code    int
	auth    bool   // the response asks for credentials
	session string // the session id that m was sent with
	resumed bool   // the stream is one that was opened again, which may repeat what belongs to other requests
	said    string // the last thing that came and is no message
}

// post sends the message and passes on the answer.
func (e *exchange) post(ctx context.Context) {
	read, stop := context.WithCancel(ctx)
	defer stop()
	accept := func() bool { return true }
	if !e.m.IsRequest() {
		accept = time.AfterFunc(acceptLimit, stop).Stop
	}
	res, err := e.do(read, http.MethodPost, e.m, nil)
	accept()
	if err != nil {
		e.fail(ctx, err)
		return
	}
	defer res.Body.Close()
	e.code, e.session = res.StatusCode, res.Request.Header.Get("Mcp-Session-Id")
	e.auth = res.Header.Get("WWW-Authenticate") != ""
	e.status = res.Status
	if kind := res.Header.Get("Content-Type"); kind != "" && res.StatusCode < 300 {
		e.status += ", " + jsonrpc.Shorten(kind)
	}
	if e.code < 300 && !e.m.IsRequest() {
		e.accepted(e.m)
		e.settled()
	}
	if e.code < 300 && isEvents(res) {
		e.streaming(1)
		defer e.streaming(-1)
	}
	body := bufio.NewReaderSize(res.Body, maxSaid)
	switch kindOf(body, isEvents(res)) {
	case asEvents:
		e.answered()
		e.follow(ctx, read, stop, res, body)
	case asJSON:
		e.whole(ctx, res, body)
	default:
		defer time.AfterFunc(TextLimit, stop).Stop()
		said, err := io.ReadAll(io.LimitReader(body, maxSaid))
		if e.said = string(said); err != nil && e.said == "" && read.Err() == nil {
			e.fail(ctx, err)
			return
		}
		e.refused(ctx)
	}
}

// streaming counts the streams that are open.
func (u *remote) streaming(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.streams += n
}

// isEvents reports whether a response says that it is a stream of events.
func isEvents(res *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return kind == "text/event-stream"
}

// The kinds of a body. A server that declares another type than it sends is understood.
const (
	asText = iota
	asJSON
	asEvents
)

// kindOf waits for the first byte of a body that is no white space.
func kindOf(body *bufio.Reader, declared bool) int {
	for n := 1; n <= maxSaid; n++ {
		begun, err := body.Peek(n)
		if rest := bytes.TrimPrefix(begun, jsonrpc.ByteOrderMark); len(rest) < 3 && bytes.HasPrefix(jsonrpc.ByteOrderMark, rest) && err == nil {
			continue
		} else if rest = bytes.TrimSpace(rest); len(rest) > 0 {
			if rest[0] == '{' || rest[0] == '[' {
				return asJSON
			}
			begun, _ = body.Peek(body.Buffered())
			for _, field := range []string{":", "data:", "event:", "id:", "retry:"} {
				declared = declared || bytes.HasPrefix(bytes.TrimPrefix(begun, jsonrpc.ByteOrderMark), []byte(field))
			}
		} else if err == nil {
			continue
		}
		if declared {
			return asEvents
		}
		return asText
	}
	if declared {
		return asEvents
	}
	return asJSON // white space that keeps the connection open
}

// whole passes on an answer that is one JSON document.
func (e *exchange) whole(ctx context.Context, res *http.Response, body io.Reader) {
	var buf bytes.Buffer
	if n := res.ContentLength; n > 0 && n <= int64(e.max) {
		buf.Grow(int(n) + bytes.MinRead)
	}
	_, err := buf.ReadFrom(io.LimitReader(body, int64(e.max)+1))
	switch {
	case err != nil:
		e.fail(ctx, fmt.Errorf("the answer broke off after %d bytes: %w", buf.Len(), err))
		return
	case buf.Len() > e.max:
		e.fail(ctx, fmt.Errorf("the answer exceeds %d bytes", e.max))
		return
	}
	if !e.take(ctx, buf.Bytes(), res) {
		e.said = head(buf.Bytes())
		e.refused(ctx)
	}
}

// head returns what is kept of something that is no message.
func head(data []byte) string { return string(data[:min(len(data), maxSaid)]) }

// take passes on a message, or a batch of them. It reports whether nothing more is to be done for the message
// of the exchange: it is answered, or it has failed.
func (e *exchange) take(ctx context.Context, data []byte, res *http.Response) (done bool) {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, jsonrpc.ByteOrderMark))
	jsonrpc.OneLine(data)
	if len(data) > 0 && data[0] == '[' {
		return e.takeBatch(ctx, data, res)
	}
	m := jsonrpc.Parse(data)
	if m.Version == "2.0" && m.Method != "" {
		e.pass(m)
		return false
	}
	if m = jsonrpc.Normalize(m); m != nil {
		return e.answer(ctx, m, res)
	}
	if e.said = head(data); !e.isOpen() || !e.meant(data) {
		return false
	}
	e.refused(ctx)
	return true
}

// meant reports whether something that is no message is meant as the answer.
func (e *exchange) meant(data []byte) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil || fields["method"] != nil { // also what has a key twice
		return false
	}
	m := &jsonrpc.Message{ID: fields["id"]}
	if fields["jsonrpc"] == nil && fields["result"] == nil && fields["error"] == nil && !jsonrpc.Alike(string(m.ID), string(e.m.ID)) {
		return false // such as a keep-alive
	}
	return e.owner(m) == string(e.m.ID)
}

// takeBatch passes on the messages of a batch one by one: hosts expect none.
func (e *exchange) takeBatch(ctx context.Context, data []byte, res *http.Response) (done bool) {
	var batch []json.RawMessage
	if adapter.Unmarshal(data, &batch) != nil {
		return false
	}
	for _, item := range batch {
		if len(item) > 0 && item[0] == '{' {
			done = e.take(ctx, item, res) || done
		}
	}
	return done
}

// owner returns the id of the request that an answer belongs to, or "" if there is none.
func (e *exchange) owner(m *jsonrpc.Message) string {
	own, id := string(e.m.ID), string(m.ID)
	if m.ID != nil && jsonrpc.Same(own, id) {
		return id
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if other, found := jsonrpc.Find(e.open, id); found != nil {
		return other
	}
	if e.m.IsRequest() && !e.resumed {
		if id != "" && slices.Contains(e.givenUp[:], id) {
			return ""
		}
		return own
	}
	if jsonrpc.Alike(own, id) {
		return own
	}
	for other := range e.open {
		if jsonrpc.Alike(other, id) {
			return other
		}
	}
	return ""
}

// answer passes on an answer to the request that it belongs to. It reports whether the one of the exchange
// needs nothing more.
func (e *exchange) answer(ctx context.Context, m *jsonrpc.Message, res *http.Response) (done bool) {
	switch owner := e.owner(m); {
	case owner == "" || owner == string(e.m.ID) && !e.isOpen():
		e.Log.Warn("the server sent an answer that belongs to no request", "answer", jsonrpc.Shorten(string(m.Raw)))
		return false
	case owner != string(e.m.ID):
		if owner != string(m.ID) {
			m = m.WithID(owner)
		}
		e.pass(m)
		return false
	}
	if e.renews(ctx, m) {
		return true
	}
	if !bytes.Equal(m.ID, e.m.ID) {
		m = m.WithID(string(e.m.ID))
	}
	e.mu.Lock()
	if e.m.Method != "initialize" {
		e.proved = e.proved || e.code < 300
	} else if m.Result != nil {
		var result struct{ ProtocolVersion string }
		_ = adapter.Unmarshal(m.Result, &result)
		e.remote.session, e.version, e.initialize = res.Header.Get("Mcp-Session-Id"), result.ProtocolVersion, e.m
	}
	e.mu.Unlock()
	e.pass(m)
	e.settled()
	return true
}

func (e *exchange) isOpen() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open[string(e.m.ID)] != nil
}

// pass passes on a message that belongs to the one of the exchange.
func (e *exchange) pass(m *jsonrpc.Message) {
	if m.IsResponse() {
		e.mu.Lock()
		delete(e.open, string(m.ID))
		e.mu.Unlock()
	}
	if e.m.IsRequest() {
		m.About = string(e.m.ID)
	}
	e.Message(m)
}

// refused fails the message: the server has answered with something else than a message.
func (e *exchange) refused(ctx context.Context) {
	if e.renews(ctx, nil) {
		return
	}
	switch said := jsonrpc.Shorten(strings.Join(strings.Fields(strings.TrimPrefix(e.said, string(jsonrpc.ByteOrderMark))), " ")); {
	case !e.m.IsRequest() && e.code < 300: // it has been accepted
	case said == "":
		e.fail(ctx, fmt.Errorf("%s: the server answered with nothing", e.status))
	case e.code < 300:
		e.fail(ctx, fmt.Errorf("%s: the server answered with no JSON-RPC answer: %s", e.status, said))
	default:
		e.fail(ctx, fmt.Errorf("%s: %s", e.status, said))
	}
}

// fail answers a request with an error, unless it has been answered or cancelled, and logs that of any other
// message.
func (e *exchange) fail(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil: // cancelled, or the run is over
	case e.m.IsRequest():
		if e.isOpen() {
			e.pass(jsonrpc.Failure(e.m.ID, "mcpdeadline: "+err.Error()))
		}
	default:
		e.Log.Warn("the server did not accept a message", "message", cmp.Or(e.m.Method, "an answer"), "error", err)
	}
}

// accepted is called when the server has accepted a notification or a response.
func (u *remote) accepted(m *jsonrpc.Message) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.proved = u.proved || u.Run == 1
	if m.Method == "notifications/initialized" && u.version <= newestWithSessions && u.version >= "2025-03-26" {
		u.posts.Add(1)
		go u.listen()
	}
}

// errEnded is the end of a stream.
var errEnded = errors.New("the server closed the stream before it answered")

// follow passes on the stream that answers a request. If the stream ends too early and its events
// have ids, follow resumes it. Package stream does not: it leaves the streams of calls to their
// clients, and this one gives up with an answer to the call.
func (e *exchange) follow(ctx, read context.Context, stop func(), res *http.Response, body io.Reader) {
	last, retry, tries := "", time.Duration(0), 0
	for {
		err := errEnded
		for event, failed := range stream.Events(body, e.max) {
			if failed != nil {
				err = failed
				break
			}
			last, retry, tries = cmp.Or(event.ID, last), cmp.Or(event.Retry, retry), 0
			if strings.ContainsFunc(last, unicode.IsControl) { // no header can hold it
				last = ""
			}
			if e.take(ctx, event.Data, res) { // many servers do not close the stream, though they should
				defer time.AfterFunc(TextLimit, stop).Stop()
			}
		}
		if !e.isOpen() || ctx.Err() != nil {
			return
		}
		for next := (*http.Response)(nil); next == nil; {
			if tries++; last == "" || tries > MaxResumes || errors.Is(err, stream.ErrEventTooLarge) || isRefusal(err) {
				if e.said != "" {
					err = fmt.Errorf("%w; before, it sent: %s", err, jsonrpc.Shorten(e.said))
				}
				e.fail(ctx, err)
				return
			}
			if !pause(read, max(retry, ReopenDelay)) {
				return
			}
			if next, err = e.get(read, last); err == nil {
				defer next.Body.Close()
				res, body, e.resumed = next, next.Body, true
			}
		}
	}
}
