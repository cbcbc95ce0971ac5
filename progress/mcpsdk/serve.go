package mcpsdk

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// Serve serves one client over t, as s.Run does, until the client leaves or ctx ends. Where ctx
// ends, it ends in order: no call is taken any more, those that run are closing where limit leaves
// time for that, see [toolcall.Drain.Shutdown], and then aborted with [toolcall.ErrShutdown] as the
// cause, their answers go out, and the connection is closed.
// s.Run closes it first, and the SDK sends no answer after that. In place of s.Run:
//
//	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//	defer stop()
//	mcpsdk.Install(server, policy)
//	err := mcpsdk.Serve(ctx, server, &mcp.StdioTransport{}, 0)
//
// The server must have [Install], or its tools [Handler]: that is where calls are aborted and
// counted. Middleware around them must not cancel, when it returns, the context that it has
// passed on, since the end of that context is how the SDK says that it has sent the answer.
//
// A call that its client cancels is aborted with a [*toolcall.CancelledError], which has the client's
// reason, and one whose client has left with [toolcall.ErrDisconnected]. s.Run has neither.
//
// The end takes no longer than limit, whatever the tools and the client do;
// [toolcall.ShutdownLimit] where it is 0 or less. The error is nil if ctx ended and all calls
// were answered, that of [toolcall.Drain.Shutdown] if they were not, and that of s.Run where the
// client has left. t is wrapped as [WrapTransport] does it.
//
// Over HTTP use a [toolcall.Drain].
func Serve(ctx context.Context, s *mcp.Server, t mcp.Transport, limit time.Duration) error {
	var drain toolcall.Drain
	if limit <= 0 {
		limit = toolcall.ShutdownLimit
	}
	base := context.WithValue(drain.Context(context.WithoutCancel(ctx)), lineKey{}, new(adapter.Sessions))
	session, err := s.Connect(base, WrapTransport(t), nil)
	if err != nil {
		return err
	}
	left := make(chan error, 1)
	go func() { left <- session.Wait() }()
	select {
	case err := <-left:
		return err
	case <-ctx.Done():
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	err = drain.Shutdown(bounded)
	// Not here: Close waits for what is being written, and for handlers of other methods.
	go session.Close()
	select {
	case <-left:
	case <-bounded.Done():
	}
	return err
}
