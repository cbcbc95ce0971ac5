package mcpgo

import (
	"context"

	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// A watch passes the ends of sessions and the exact progress tokens from the hooks of a server to its middleware.
type watch struct {
	calls  adapter.Sessions // by session id
	tokens tokens
}

func (w *watch) observe(h *server.Hooks) {
	h.AddOnUnregisterSession(func(ctx context.Context, session server.ClientSession) {
		cause := toolcall.ErrDisconnected
		if streamable(session) {
			if ctx.Value(endKey{}) == nil {
				return // the standalone stream has ended, the session was idle, or the server shuts down
			}
			cause = toolcall.ErrSessionEnded
		}
		w.calls.Abort(session.SessionID(), nil, cause)
	})
	h.AddOnRequestInitialization(func(ctx context.Context, id, message any) error {
		w.tokens.arrived(ctx, id, message)
		return nil
	})
	h.AddBeforeCallTool(w.tokens.decoded)
	h.AddBeforeCallTool(requestCalled)
}

// endKey is the key of a context value that [WrapHTTP] sets for the DELETE with which a client ends its session.
type endKey struct{}

// untilGone returns a context for a call, which ends when the client cancels the call or its session ends. Over stdio
// and in one process mcp-go itself ends the context with the session. Calls without a session are not joined, because
// they all have the session id "".
func (w *watch) untilGone(ctx context.Context, id string) (_ context.Context, release func()) {
	session := server.ClientSessionFromContext(ctx)
	ctx, leave := untilCancelled(ctx, session, id)
	if session == nil || local(session) || session.SessionID() == "" {
		return ctx, leave
	}
	ctx, out := w.calls.Join(ctx, session.SessionID(), nil)
	return ctx, func() { out(); leave() }
}

// untilCancelled returns a context for a call. If there is a wire, the context ends when the client cancels the call,
// with the client's reason in the cause. A cancellation may arrive before the call joins; early returns its cause then.
func untilCancelled(ctx context.Context, session server.ClientSession, id string) (_ context.Context, release func()) {
	wire := wireOf(ctx, session)
	if wire == nil || id == "" {
		return ctx, func() {}
	}
	of := ""
	if streamable(session) {
		of = session.SessionID()
	}
	ctx, release = wire.requests.Join(ctx, of, id)
	if wire.early != nil {
		if cause := wire.early(id); cause != nil {
			wire.requests.Abort(of, id, cause)
		}
	}
	return ctx, release
}
