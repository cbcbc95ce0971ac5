package mcpsdk

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// Serve serves one client over t, as s.Run does, until the client leaves or ctx ends. If ctx ends,
// Serve shuts down in order. Later calls do not reach their tools. Running tools learn of the shutdown from
// [timeout.Closing], if limit is longer than [toolcall.ShutdownLimit], and are later aborted with
// [toolcall.ErrShutdown] as the cause; see [toolcall.Drain.Shutdown]. When their answers have been sent,
// Serve closes the connection. s.Run closes the connection first, and the SDK sends no answer after that.
// Use Serve instead of s.Run:
//
//	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//	defer stop()
//	mcpsdk.Install(server, &mcpsdk.Options{Policy: policy})
//	err := mcpsdk.Serve(ctx, server, &mcp.StdioTransport{}, 0)
//
// The server must have [Install], or its tools must have [Handler], because these register the calls
// with the shutdown. Middleware around them must not pass on a context that it cancels when it returns:
// the end of the context means that the SDK has sent the answer.
//
// A call that its client cancels is aborted with a [*toolcall.CancelledError], which has the client's
// reason, and a call whose client has left with [toolcall.ErrDisconnected]. s.Run does neither.
//
// The shutdown takes no longer than limit, whatever the tools and the client do. 0 or less means
// [toolcall.ShutdownLimit]. If t does not connect, Serve returns the error of t. If the client left, Serve returns
// the error of s.Run. If ctx ended, Serve returns the error of [toolcall.Drain.Shutdown], which is nil if all calls
// were answered. Serve wraps t as [WrapTransport] does.
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
	select { // either may win: a client that has left awaits no answer
	case err := <-left:
		return err
	case <-ctx.Done():
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	err = drain.Shutdown(bounded)
	// Close runs on another goroutine, because it waits for messages that are being written, and for
	// handlers of other methods.
	go session.Close()
	select {
	case <-left:
	case <-bounded.Done():
	}
	return err
}
