package mcpgo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// A wire is what mcp-go's messages to a client pass on their way out: those of the server under
// [Serve], those in answer to one request under [WrapHTTP]. The adapter's own messages go out
// between two of them, and so before the result of a call or not at all (SPEC 7.4). mcp-go's own
// queue of notifications cannot do that: nobody learns when something has left it, and the calls
// of a session over Streamable HTTP share one, from which any of their streams takes the next.
type wire struct {
	mu    sync.Mutex                 // of writing; held for as long as the client does not read
	frame func(message []byte) error // writes a message of ours; called with mu held
	// answered is the Answered of a toolcall.Call; nil if the wire sees the answers itself.
	answered func(leave func())
	header   http.Header       // of the request, over HTTP
	streams  *streams          // over HTTP
	requests *adapter.Sessions // the calls of all wires of the server, by sessionRequest
	// early returns the cause with which a call was cancelled, perhaps before it joined requests; nil over HTTP.
	early func(id string) error

	state     sync.Mutex           // of what follows; taken after mu, if that is taken
	owner     server.ClientSession // the session of the calls
	questions map[string]*question // open questions, by their marks
	marks     int
	status    int // of the response, over HTTP, where it is not mcp-go's
}

type wireKey struct{}

// A sessionRequest identifies a request that notifications/cancelled can name. session is "" over stdio.
type sessionRequest struct{ session, id string }

// wireOf returns the wire of a call of session, or nil if there is none. A tool may run a server itself and pass its
// context on to it: the wire is not that server's.
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

// errNoWire is what frame returns where nothing of ours may go out, and mcp-go's way has to do.
var errNoWire = errors.New("mcpgo: nothing can be written to the client here")

// notify sends a notification, unless over says that it is too late when its turn has come.
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

// A question is an elicitation that waits for its answer.
type question struct {
	id        json.RawMessage             // nil until it has gone out
	takenBack string                      // why the question was taken back; "" if it was not
	otherwise func(params map[string]any) // sends the cancellation where the wire cannot
}

// markKey is where a question has its mark, in _meta: mcp-go does not say what id it has given
// to a request, and without that nobody can cancel it.
const markKey = "io.github.tooldeadline/question"

// ask returns a marked copy of a request, and what ends the question: with a reason it is
// cancelled at the client, without one it has been answered. otherwise sends a cancellation
// mcp-go's way, and must not block.
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

	meta := new(mcp.Meta)
	if r.Params.Meta != nil {
		*meta = *r.Params.Meta
		meta.AdditionalFields = maps.Clone(meta.AdditionalFields)
	}
	meta.SetMetaField(markKey, mark)
	r.Params.Meta = meta
	return r, func(reason string) {
		w.state.Lock()
		q.takenBack = reason
		out := q.id != nil
		if out || reason == "" {
			delete(w.questions, mark)
		}
		w.state.Unlock()
		if out && reason != "" {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.cancel(q)
		}
		// One that is still in a queue of mcp-go's is cancelled behind it.
	}
}

// cancel tells the client that nobody waits for the answer any more. The caller has mu, and the
// question has gone out and been taken back.
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
	meta, _ := params[metaKey].(map[string]any) // mcp-go wants it beside the others
	return json.Marshal(mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION, Notification: mcp.Notification{
		Method: method, Params: mcp.NotificationParams{Meta: meta, AdditionalFields: params},
	}})
}

// observe looks at what mcp-go has written. The caller has mu.
func (w *wire) observe(p []byte) {
	if q := w.written(p); q != nil {
		w.cancel(q)
	}
}

// written keeps the id of a question that has been written, and returns it if it has been taken
// back before that.
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

// streams are the GETs that are open, by session.
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

// open reports whether a session has one.
func (s *streams) open(session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[session] > 0
}

var errAnswered = errors.New("dropped: the call has been answered")
