package mcpgo

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress"
)

// mcp-go puts a notification into a channel of the session, from which a goroutine of the
// transport takes it, marshals it and writes it. The response goes another way and can
// overtake it. There is no way to learn that it has been written. But its marshalling can
// be seen, from a value that marshals itself, and that is what orders the two (SPEC 7.4):
//
//   - the sending waits until the notification is being marshalled, which is what
//     progress.Start waits for before the call is answered;
//   - then the answer waits for settle, which the transport has for what is left to do:
//     to take the lock under which it writes, or to put a string into a queue;
//   - what has not been marshalled when the call is answered never is: it is an error to
//     mcp-go then, which drops it.
const settle = time.Millisecond

// takeWait is how long one notification may hold up the next of the same call.
const takeWait = 100 * time.Millisecond

// notifications are those of one call.
type notifications struct {
	server   *server.MCPServer
	session  server.ClientSession
	marshals bool // the transport does

	mu    sync.Mutex
	ended bool
	taken time.Time // the last one, by the transport
}

// newNotifications gives nil where there is no token.
func newNotifications(ctx context.Context, token any) *notifications {
	if token == nil {
		return nil
	}
	session := server.ClientSessionFromContext(ctx)
	return &notifications{server: server.ServerFromContext(ctx), session: session, marshals: marshals(session)}
}

// marshals reports whether notifications of the session are marshalled by one of mcp-go's
// transports. The handlers of a client in this process, and the session of somebody's test,
// get them as they are.
func marshals(session server.ClientSession) bool {
	t := reflect.TypeOf(session)
	return t != nil && t.Kind() == reflect.Pointer && t != reflect.TypeFor[*server.InProcessSession]() &&
		t.Elem().PkgPath() == reflect.TypeFor[server.MCPServer]().PkgPath()
}

var errNoServer = errors.New("mcpgo: the context has no server")

// send is the progress.Notifier of the call.
func (n *notifications) send(ctx context.Context, p progress.Notification) error {
	if n.server == nil {
		return errNoServer // a handler that is called without a server
	}
	params := map[string]any{"progressToken": p.ProgressToken, "progress": p.Progress}
	if p.Total > 0 {
		params["total"] = p.Total
	}
	if p.Message != "" {
		params["message"] = p.Message
	}
	f := &figure{of: n, value: p.Progress, taken: make(chan struct{})}
	if n.marshals {
		params["progress"] = f
	}
	if err := n.server.SendNotificationToClient(ctx, "notifications/progress", params); err != nil || !n.marshals {
		return err
	}
	timer := time.NewTimer(takeWait)
	defer timer.Stop()
	select {
	case <-f.taken:
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

// end is called when the execution has ended, before the answer.
func (n *notifications) end() {
	if n == nil {
		return
	}
	n.mu.Lock()
	n.ended = true
	taken := n.taken
	n.mu.Unlock()
	if !taken.IsZero() {
		time.Sleep(settle - time.Since(taken))
	}
}

// A figure is a progress that knows when it is marshalled.
type figure struct {
	of    *notifications
	value float64
	taken chan struct{} // closed then
}

var errAnswered = errors.New("dropped: the call has been answered")

func (f *figure) MarshalJSON() ([]byte, error) {
	n := f.of
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended {
		return nil, errAnswered
	}
	n.taken = time.Now()
	select {
	case <-f.taken: // mcp-go marshals once; an event store might again
	default:
		close(f.taken)
	}
	return json.Marshal(f.value)
}

// token gives the request's progress token, nil where there is none or it cannot be echoed.
// mcp-go decodes numbers to float64: from 2^53 on one may stand for several integers, and
// another's token is worse than none. A watch has put the exact one in its place.
func token(m *mcp.Meta) any {
	if m == nil {
		return nil
	}
	if f, ok := m.ProgressToken.(float64); ok && !exact(f) {
		return nil
	}
	return m.ProgressToken
}
