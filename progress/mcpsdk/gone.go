package mcpsdk

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// requestKey is the key of the context of the HTTP request. The SDK passes on its values to tools, but not its
// cancellation.
type requestKey struct{}

type httpRequest struct {
	ctx      context.Context
	calls    *adapter.Sessions // by session
	requests *adapter.Sessions // by sessionRequest
}

// lineKey is the key of the calls of a connection under [Serve], an [adapter.Sessions] by sessionRequest.
type lineKey struct{}

// A sessionRequest identifies a request that notifications/cancelled can name. session is "" if there is none.
type sessionRequest struct {
	session string
	id      any
}

// untilGone returns a context for a call that ends with the client's connection, or with its
// session where it has one.
//
// The context that the SDK hands on is that of the request which opened the session. That
// is the right one on SSE, where it lasts as long as the session, and where a session is a
// single request. Those two have no session ID. Where there is one, the request is the
// client's first, and long over. Over, or another session's, it is also for a server that a
// tool runs in memory.
func untilGone(ctx context.Context, session *mcp.ServerSession) (_ context.Context, release func()) {
	if toolcall.FromContext(ctx) != nil {
		return ctx, func() {}
	}
	// The SDK cancels a call without a cause. The sessions, which abort it with one, see the
	// message before.
	if line, ok := ctx.Value(lineKey{}).(*adapter.Sessions); ok {
		return line.Join(ctx, sessionRequest{id: rawRequestID(ctx)})
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
		ctx, leave := r.requests.Join(ctx, sessionRequest{id, rawRequestID(ctx)})
		ctx, out := r.calls.Join(ctx, id)
		return ctx, func() { out(); leave() }
	}
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(r.ctx, func() {
		cause := context.Cause(r.ctx)
		if cause == context.Canceled { // net/http says no more
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

// endWait is how long a request to end a session may take before its calls are aborted. One
// that the SDK turns away, for another user's session say, is answered at once; one that it
// accepts waits for the calls.
const endWait = 50 * time.Millisecond

// abortUnlessAnswered aborts the calls of a session endWait after a request to end the session has come, unless
// answered is called before. The caller calls answered when the request has been answered.
func abortUnlessAnswered(calls *adapter.Sessions, session string) (answered func()) {
	timer := time.AfterFunc(endWait, func() { calls.Abort(session, toolcall.ErrSessionEnded) })
	return func() { timer.Stop() }
}
