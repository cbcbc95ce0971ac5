package mcpsdk

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// requestKey is the key of the *httpRequest in a context. The SDK passes the values of the context of an HTTP request
// on to tools, but not its cancellation.
type requestKey struct{}

type httpRequest struct {
	ctx   context.Context
	calls *adapter.Sessions // the calls of the handler, by session id
}

// lineKey is the key of the *adapter.Sessions in a context under [Serve], which has the calls in the session "".
type lineKey struct{}

// untilGone returns a context for a call that ends when the client cancels the call, disconnects or, in a session with
// an id, ends the session. If ctx already belongs to a call, untilGone returns ctx: a tool may run a server in memory.
//
// Over HTTP the SDK passes on the context of the request that opened the session. Without a session id, that request
// lasts as long as the session: over SSE, and if each request is a session of its own. In a session with an id, it was
// the client's first request and has ended, so its end means nothing for the call.
func untilGone(ctx context.Context, session *mcp.ServerSession) (_ context.Context, release func()) {
	if toolcall.FromContext(ctx) != nil {
		return ctx, func() {}
	}
	// The SDK cancels a call without a cause. The transport sees the message first, and aborts the
	// calls in line with a cause.
	if line, ok := ctx.Value(lineKey{}).(*adapter.Sessions); ok {
		return line.Join(ctx, "", rawRequestID(ctx))
	}
	r, ok := ctx.Value(requestKey{}).(*httpRequest)
	if !ok {
		return ctx, func() {}
	}
	id := session.ID()
	if id == "" && r.ctx.Err() != nil {
		return ctx, func() {}
	}
	if id != "" {
		return r.calls.Join(ctx, id, rawRequestID(ctx))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(r.ctx, func() {
		cause := context.Cause(r.ctx)
		if cause == context.Canceled { // net/http sets no cause
			cause = toolcall.ErrDisconnected
		}
		cancel(cause)
	})
	return ctx, func() {
		unhook()
		cancel(nil)
	}
}

const sessionHeader = "Mcp-Session-Id"

// endWait is how long a request to end a session may take before the calls of the session are aborted. The SDK answers
// a request that it refuses, such as one for the session of another user, at once. A request that it accepts waits for
// the calls.
const endWait = 50 * time.Millisecond

// abortUnlessAnswered aborts the calls of a session after endWait, unless answered is called before. The caller calls
// answered when the request to end the session has been answered.
func abortUnlessAnswered(calls *adapter.Sessions, session string) (answered func()) {
	timer := time.AfterFunc(endWait, func() { calls.Abort(session, nil, toolcall.ErrSessionEnded) })
	return func() { timer.Stop() }
}
