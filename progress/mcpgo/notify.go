package mcpgo

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

const methodProgress = "notifications/progress"

// Without a wire, mcp-go puts a notification into a channel of the session, from which a
// goroutine of the transport takes it, marshals it and writes it. The response goes another way
// and can overtake it. There is no way to learn that it has been written. But its marshalling
// can be seen, from a value that marshals itself, and that is what orders the two (SPEC 7.4):
// the sending waits until the notification is being marshalled, which is what progress.Start
// waits for before the call is answered, and what has not been marshalled by then never is:
// that is an error to mcp-go, which drops it. What is left is the time between the
// marshalling and the writing, and there the transports differ.
type order int

const (
	// unordered: whoever takes the notifications does not marshal them. The handlers of a
	// client in this process, and the session of somebody's test, get them as they are.
	unordered order = iota
	// locked: Streamable HTTP marshals under the lock that the response takes. Where a session
	// has several streams, it may be the lock of another's response.
	locked
	// flushed: over SSE, a second notification is taken after the first has been queued, and
	// one that cannot be marshalled is dropped without a word.
	flushed
	// settled: over stdio that would be logged, so all there is to do is to wait.
	settled
)

// settle is how long an answer waits after the marshalling of a notification, over stdio.
const settle = 5 * time.Millisecond

// takeWait is how long one notification may hold up the next of the same call.
const takeWait = 100 * time.Millisecond

func orderOf(session server.ClientSession) order {
	t := reflect.TypeOf(session)
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().PkgPath() != reflect.TypeFor[server.MCPServer]().PkgPath() {
		return unordered
	}
	if _, ok := session.(server.SessionWithStreamableHTTPConfig); ok {
		return locked
	}
	switch t.Elem().Name() {
	case "sseSession":
		return flushed
	case "stdioSession":
		return settled
	}
	return unordered
}

// notifications are those of one call.
type notifications struct {
	server  *server.MCPServer
	session server.ClientSession
	order   order
	wire    *wire // nil where there is none
	run     *adapter.Task

	mu    sync.Mutex
	ended bool
	taken time.Time // the last one, by the transport
}

func newNotifications(ctx context.Context, run *adapter.Task) *notifications {
	session := server.ClientSessionFromContext(ctx)
	n := &notifications{server: server.ServerFromContext(ctx), session: session, order: orderOf(session), run: run}
	if n.order == locked || n.order == settled {
		n.wire = wireOf(ctx, session)
	}
	return n
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
	return n.run.Notify(func() error { return n.deliver(ctx, params, p.Progress) })
}

func (n *notifications) deliver(ctx context.Context, params map[string]any, progress float64) error {
	if err := n.write(params); err != errNoWire {
		return err
	}
	if n.order == unordered {
		return n.server.SendNotificationToClient(ctx, methodProgress, params)
	}
	f := &figure{of: n, value: progress, taken: make(chan struct{})}
	params["progress"] = f
	if err := n.server.SendNotificationToClient(ctx, methodProgress, params); err != nil {
		return err
	}
	f.await(ctx)
	return nil
}

// write sends a notification over the wire.
func (n *notifications) write(params map[string]any) error {
	if n.wire == nil {
		return errNoWire
	}
	if !n.session.Initialized() {
		return server.ErrNotificationNotInitialized
	}
	if s, ok := n.session.(server.SessionWithStreamableHTTPConfig); ok {
		s.UpgradeToSSEWhenReceiveNotification() // the answer must be an event too
	}
	if meta := relatedTo(n.run, nil); meta != nil {
		params = maps.Clone(params)
		params[metaKey] = meta
	}
	return n.wire.notify(methodProgress, params, func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.ended
	})
}

// answered is what the call has as Answered.
func (n *notifications) answered() func(leave func()) {
	if n.wire == nil {
		return nil
	}
	return n.wire.answered
}

// end is called when the execution has ended, before the answer.
func (n *notifications) end() {
	n.mu.Lock()
	n.ended = true
	taken := n.taken
	n.mu.Unlock()
	if taken.IsZero() {
		return
	}
	switch n.order {
	case settled:
		time.Sleep(settle - time.Since(taken))
	case flushed:
		f := &figure{of: n, taken: make(chan struct{})}
		select {
		case n.session.NotificationChannel() <- mcp.JSONRPCNotification{Notification: mcp.Notification{
			Params: mcp.NotificationParams{AdditionalFields: map[string]any{"progress": f}},
		}}:
			f.await(context.Background())
		default: // full: the client does not read, and the answer queues up behind the rest
		}
	}
}

// A figure is a progress that knows when it is marshalled.
type figure struct {
	of    *notifications
	value float64
	once  sync.Once // mcp-go marshals once; an event store of somebody's might again
	taken chan struct{}
}

var errAnswered = errors.New("dropped: the call has been answered")

func (f *figure) MarshalJSON() ([]byte, error) {
	n := f.of
	n.mu.Lock()
	defer n.mu.Unlock()
	defer f.once.Do(func() { close(f.taken) })
	if n.ended {
		return nil, errAnswered
	}
	n.taken = time.Now()
	return json.Marshal(f.value)
}

func (f *figure) await(ctx context.Context) {
	timer := time.NewTimer(takeWait)
	defer timer.Stop()
	select {
	case <-f.taken:
	case <-timer.C:
	case <-ctx.Done():
	}
}
