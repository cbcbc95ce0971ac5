package mcpgo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// A wire passes on what mcp-go writes to a client: everything under [Serve], and the response to one
// POST under [WrapHTTP]. This package writes its own messages between two of mcp-go's, so that each
// precedes the result of its call or is dropped (SPEC 7.4). mcp-go's queue of notifications cannot
// ensure that: it does not report what it has written, and all streams of a session over Streamable
// HTTP take notifications from the same queue.
type wire struct {
	mu    sync.Mutex                 // held during each write, which blocks while the client does not read
	frame func(message []byte) error // writes a message of this package, or returns errNoWire; called with mu held
	// answered becomes the Answered field of each toolcall.Call. It is nil under Serve, whose line sees the answers.
	answered func(leave func())
	header   http.Header       // of the request; nil over stdio
	streams  *streams          // nil over stdio
	requests *adapter.Sessions // the calls on all wires of the server, by session, which is "" over stdio
	// early returns the cause with which a call was cancelled before it joined requests, or nil. The field is nil over
	// HTTP.
	early func(id string) error

	state     sync.Mutex           // guards the fields below; may be locked while mu is held, not the reverse
	owner     server.ClientSession // the session of the calls; nil before the first call of wireOf
	questions map[string]*question // open questions, by their marks
	marks     int                  // the number of marks used
	status    int                  // the HTTP status of the response; 0 means the status that mcp-go sets
}

type wireKey struct{}

// wireOf returns the wire in ctx, or nil if ctx has no wire or the wire belongs to another session. The wire belongs to
// the session of the first call of wireOf. A tool may itself run a server with its own context; the sessions of that
// server do not get the wire.
func wireOf(ctx context.Context, session server.ClientSession) *wire {
	w, _ := ctx.Value(wireKey{}).(*wire)
	if w == nil || session == nil {
		return nil
	}
	w.state.Lock()
	defer w.state.Unlock()
	if w.owner == nil {
		w.owner = session
	}
	if w.owner != session {
		return nil
	}
	return w
}

func (w *wire) setStatus(status int) {
	w.state.Lock()
	defer w.state.Unlock()
	w.status = status
}

func (w *wire) statusOf() int {
	w.state.Lock()
	defer w.state.Unlock()
	return w.status
}

// errNoWire reports that this package cannot write a message between those of mcp-go. The caller then sends it
// through mcp-go's own queue.
var errNoWire = errors.New("mcpgo: nothing can be written to the client here")

// notify writes a notification to the client. If over returns true once notify holds mu, the call has been answered:
// notify writes nothing and returns errAnswered.
func (w *wire) notify(method string, params map[string]any, over func() bool) error {
	message, err := notification(method, params)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if over() {
		return errAnswered
	}
	return w.frame(message)
}

// A question is an elicitation whose answer the tool waits for. The lock state of the wire guards id and takenBack,
// which do not change any more once cancel is called.
type question struct {
	id        json.RawMessage             // the id of the request; nil until the request has been written
	takenBack string                      // the reason of the cancellation; "" if the question was not cancelled
	otherwise func(params map[string]any) // sends the cancellation if frame returns errNoWire
}

// markKey is the key of a mark in the _meta of a question. By the mark, the wire finds the question in what mcp-go
// writes, and reads the id that a cancellation needs; mcp-go does not return the id.
const markKey = "io.github.tooldeadline/question"

// ask returns a copy of an elicitation request with a mark in its _meta, and a function that ends the question.
// end("") forgets a question that has been answered; end with a reason cancels the question at the client. The wire
// calls otherwise, which must not block, for a cancellation that only mcp-go can send.
func (w *wire) ask(r mcp.ElicitationRequest, otherwise func(params map[string]any)) (_ mcp.ElicitationRequest, end func(reason string)) {
	w.state.Lock()
	defer w.state.Unlock()
	w.marks++
	mark := strconv.Itoa(w.marks)
	if w.questions == nil {
		w.questions = make(map[string]*question)
	}
	q := &question{otherwise: otherwise}
	w.questions[mark] = q

	r.Params.Meta = withField(r.Params.Meta, markKey, mark)
	return r, func(reason string) {
		w.state.Lock()
		q.takenBack = reason
		out := q.id != nil
		if out || reason == "" || w.streams == nil { // over stdio, mcp-go has written the question by now or never will
			delete(w.questions, mark)
		}
		w.state.Unlock()
		if out && reason != "" {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.cancel(q)
		}
		// Over HTTP mcp-go may not have written the question yet; observe then cancels it right after the write.
	}
}

// cancel sends a notifications/cancelled for a question that was written and then taken back. The caller holds mu.
func (w *wire) cancel(q *question) {
	params := map[string]any{"requestId": q.id, "reason": q.takenBack}
	message, err := notification(string(mcp.MethodNotificationCancelled), params)
	if err == nil {
		err = w.frame(message)
	}
	if err == errNoWire {
		q.otherwise(params)
	}
}

func notification(method string, params map[string]any) ([]byte, error) {
	meta, _ := params[metaKey].(map[string]any) // mcp-go ignores a _meta in AdditionalFields
	return json.Marshal(mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION, Notification: mcp.Notification{
		Method: method, Params: mcp.NotificationParams{Meta: meta, AdditionalFields: params},
	}})
}

// observe examines a message that mcp-go has just written, and cancels a question in it that was taken back before.
// The caller holds mu.
func (w *wire) observe(p []byte) {
	if q := w.written(p); q != nil {
		w.cancel(q)
	}
}

// written records the id of the question in p, if there is one. It returns the question if it was taken back before
// the write, and otherwise nil.
func (w *wire) written(p []byte) (late *question) {
	w.state.Lock()
	defer w.state.Unlock()
	start := bytes.IndexByte(p, '{')
	if len(w.questions) == 0 || start < 0 || !bytes.Contains(p, []byte(markKey)) {
		return nil
	}
	var m struct {
		ID     json.RawMessage
		Params struct {
			Meta map[string]any `json:"_meta"`
		}
	}
	if json.NewDecoder(bytes.NewReader(p[start:])).Decode(&m) != nil {
		return nil
	}
	mark, _ := m.Params.Meta[markKey].(string)
	q := w.questions[mark]
	if q == nil {
		return nil
	}
	if q.id = m.ID; q.takenBack == "" {
		return nil
	}
	delete(w.questions, mark)
	return q
}

// streams counts the open GET requests of each session id.
type streams struct {
	mu   sync.Mutex
	byID map[string]int
}

func (s *streams) begin(session string) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = make(map[string]int)
	}
	s.byID[session]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.byID[session]--; s.byID[session] == 0 {
			delete(s.byID, session)
		}
	}
}

// open reports whether a session has an open GET request.
func (s *streams) open(session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[session] > 0
}

var errAnswered = errors.New("dropped: the call has been answered")
