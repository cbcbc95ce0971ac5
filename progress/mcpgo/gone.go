package mcpgo

import (
	"context"

	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// A watch carries what the hooks of a server learn to its middleware.
type watch struct {
	calls  adapter.Sessions // by session id
	tokens tokens
}

func (w *watch) observe(h *server.Hooks) {
	h.AddOnUnregisterSession(func(ctx context.Context, session server.ClientSession) {
		cause := toolcall.ErrDisconnected
		if streamable(session) {
			if ctx.Value(endKey{}) == nil {
				return // a stream beside the calls has ended, the session was idle, or the server shuts down
			}
			cause = toolcall.ErrSessionEnded
		}
		w.calls.Abort(session.SessionID(), cause)
	})
	h.AddOnRequestInitialization(func(ctx context.Context, id, message any) error {
		w.tokens.arrived(ctx, id, message)
		return nil
	})
	h.AddBeforeCallTool(w.tokens.decoded)
	h.AddBeforeCallTool(requestCalled)
}

// endKey is in the context of a request under [WrapHTTP] by which a client ends its session.
type endKey struct{}

// untilGone returns a context for a call that ends with its session. Over stdio and in one
// process mcp-go does that itself. Over Streamable HTTP the context of a call ends with its own
// connection too. Calls without a session all have the id "", and nothing but their limits in
// common.
func (w *watch) untilGone(ctx context.Context, id string) (_ context.Context, release func()) {
	session := server.ClientSessionFromContext(ctx)
	ctx, leave := untilCancelled(ctx, session, id)
	if session == nil || local(session) || session.SessionID() == "" {
		return ctx, leave
	}
	ctx, out := w.calls.Join(ctx, session.SessionID())
	return ctx, func() { out(); leave() }
}

// untilCancelled returns a context for a call that ends, with the client's reason, when the client
// cancels it, if there is a wire to see that.
func untilCancelled(ctx context.Context, session server.ClientSession, id string) (_ context.Context, release func()) {
	wire := wireOf(ctx, session)
	if wire == nil || id == "" {
		return ctx, func() {}
	}
	key := sessionRequest{id: id}
	if streamable(session) {
		key.session = session.SessionID()
	}
	ctx, release = wire.requests.Join(ctx, key)
	if wire.early != nil {
		if cause := wire.early(id); cause != nil {
			wire.requests.Abort(key, cause)
		}
	}
	return ctx, release
}
