package mcpgo

import (
	"context"

	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// A watch is what the hooks of one server know for its middleware.
type watch struct {
	calls  toolcall.Sessions // by session id
	tokens tokens
}

func (w *watch) observe(h *server.Hooks) {
	h.AddOnUnregisterSession(func(_ context.Context, session server.ClientSession) {
		w.calls.Abort(session.SessionID(), toolcall.ErrDisconnected)
	})
	h.AddOnRequestInitialization(func(ctx context.Context, id, message any) error {
		w.tokens.arrived(ctx, id, message)
		return nil
	})
	h.AddBeforeCallTool(w.tokens.decoded)
}

// untilGone returns a context for a call that ends with its session. Over stdio and in one
// process mcp-go does that itself. Over Streamable HTTP the context of a call ends with its own
// connection, and a session may end with the connection of a stream beside it, which says
// nothing about the calls.
func (w *watch) untilGone(ctx context.Context) (_ context.Context, release func()) {
	session := server.ClientSessionFromContext(ctx)
	_, inProcess := session.(*server.InProcessSession)
	if o := orderOf(session); inProcess || o == locked || o == settled || session == nil {
		return ctx, func() {}
	}
	return w.calls.Join(ctx, session.SessionID())
}
