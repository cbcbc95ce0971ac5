package mcpgo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// ErrDisconnected is the cause of an abort because the client has gone; see [Install].
var ErrDisconnected = errors.New("mcpgo: the client has disconnected")

// A watch is what the hooks of one server tell its middleware.
type watch struct {
	mu     sync.Mutex
	calls  map[string]map[*context.CancelCauseFunc]bool // by session id
	tokens map[string]json.Number                       // by session and request id
}

func newWatch() *watch {
	return &watch{calls: make(map[string]map[*context.CancelCauseFunc]bool), tokens: make(map[string]json.Number)}
}

func (w *watch) observe(h *server.Hooks) {
	h.AddOnUnregisterSession(func(_ context.Context, session server.ClientSession) { w.gone(session.SessionID()) })
	h.AddOnRequestInitialization(func(ctx context.Context, id, message any) error {
		w.arrived(ctx, id, message)
		return nil
	})
	h.AddBeforeCallTool(w.decoded)
}

// follow gives a context that is cancelled when the session of ctx ends. Over stdio and in
// one process mcp-go does that itself. Over Streamable HTTP the context of a call ends with
// its own connection, and a session may end with the connection of a stream beside it, which
// says nothing about the calls.
func (w *watch) follow(ctx context.Context) (_ context.Context, release func()) {
	session := server.ClientSessionFromContext(ctx)
	_, inProcess := session.(*server.InProcessSession)
	if o := orderOf(session, nil); inProcess || o == locked || o == settled || session == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	id := session.SessionID()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls[id] == nil {
		w.calls[id] = make(map[*context.CancelCauseFunc]bool)
	}
	w.calls[id][&cancel] = true
	return ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.calls[id], &cancel)
		if len(w.calls[id]) == 0 {
			delete(w.calls, id)
		}
		cancel(nil)
	}
}

func (w *watch) gone(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for cancel := range w.calls[id] {
		(*cancel)(ErrDisconnected)
	}
}

// maxTokens bounds what requests can leave here that never get as far as a tool. Those that
// are forgotten send no notifications.
const maxTokens = 1000

// arrived keeps the token of a message where mcp-go is going to lose some of it.
func (w *watch) arrived(ctx context.Context, id, message any) {
	raw, _ := message.(json.RawMessage)
	if !bytes.Contains(raw, []byte(`"progressToken"`)) {
		return
	}
	var m struct {
		Method string
		Params struct {
			Meta struct {
				ProgressToken json.RawMessage `json:"progressToken"`
			} `json:"_meta"`
		}
	}
	if json.Unmarshal(raw, &m) != nil || m.Method != string(mcp.MethodToolsCall) {
		return
	}
	number := json.Number(m.Params.Meta.ProgressToken)
	if f, err := number.Float64(); err != nil || exact(f) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.tokens) >= maxTokens {
		clear(w.tokens)
	}
	w.tokens[callKey(ctx, id)] = number
}

// decoded puts the token back into the request.
func (w *watch) decoded(ctx context.Context, id any, request *mcp.CallToolRequest) {
	meta := request.Params.Meta
	if meta == nil || meta.ProgressToken == nil {
		return
	}
	if f, ok := meta.ProgressToken.(float64); !ok || exact(f) {
		return
	}
	key := callKey(ctx, id)
	w.mu.Lock()
	defer w.mu.Unlock()
	if number, ok := w.tokens[key]; ok {
		meta.ProgressToken = number
		delete(w.tokens, key)
	}
}

// exact reports whether f stands for one integer only.
func exact(f float64) bool { return -1<<53 < f && f < 1<<53 }

// callKey tells requests apart by the session object: without sessions, over stateless
// HTTP, all have the same id, but each request has an object of its own.
func callKey(ctx context.Context, id any) string {
	return fmt.Sprintf("%p %v", server.ClientSessionFromContext(ctx), id)
}
