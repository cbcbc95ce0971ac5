package mcpgo

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// streamable reports whether a session is one of Streamable HTTP.
func streamable(session server.ClientSession) bool {
	_, ok := session.(server.SessionWithStreamableHTTPConfig)
	return ok
}

// local reports whether a session is the only one of its connection, over stdio or in one process.
func local(session server.ClientSession) bool {
	_, inProcess := session.(*server.InProcessSession)
	return inProcess || stdio(session)
}

func stdio(session server.ClientSession) bool {
	return session != nil && session.SessionID() == "stdio" // for want of a type that is exported
}

// notifications sends the notifications of one call. They go out over the wire or, without one, the way of mcp-go:
// into a queue of the session, from which a goroutine of the transport marshals and writes them. Over Streamable HTTP
// mcp-go empties that queue before it answers. Over SSE and stdio the answer goes another way, and there they are
// figures (SPEC 7.4).
type notifications struct {
	server  *server.MCPServer
	session server.ClientSession
	wire    *wire // nil if there is none
	sse     bool
	run     *adapter.Task

	last  atomic.Pointer[figure]
	ended atomic.Bool
}

func newNotifications(ctx context.Context, run *adapter.Task, header http.Header) *notifications {
	session := server.ClientSessionFromContext(ctx)
	n := &notifications{server: server.ServerFromContext(ctx), session: session, run: run}
	if streamable(session) || stdio(session) {
		n.wire = wireOf(ctx, session)
	} else if header != nil {
		_, n.sse = session.(server.SessionWithTools) // of mcp-go's sessions those over HTTP alone
	}
	return n
}

var (
	errNoServer = errors.New("mcpgo: the context has no server")
)

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
	if !n.sse && !stdio(n.session) {
		return n.server.SendNotificationToClient(ctx, methodProgress, params)
	}
	f := &figure{notifications: n, value: progress, reached: make(chan struct{}, 1)}
	params["progress"] = f
	err := n.server.SendNotificationToClient(ctx, methodProgress, params)
	if err == nil {
		n.last.Store(f)
	}
	return err
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
		if id, _ := n.run.Handed(); id != "" {
			return errNoWire // mcp-go may have begun with the handle, as what it is: an event must not come before it
		}
		s.UpgradeToSSEWhenReceiveNotification() // the answer must be an event too
	}
	if meta := relatedTo(n.run, nil); meta != nil {
		params = maps.Clone(params)
		params[metaKey] = meta
	}
	return n.wire.notify(methodProgress, params, n.ended.Load)
}

// answered returns the Answered of the call.
func (n *notifications) answered() func(leave func()) {
	if n.wire == nil {
		return nil
	}
	return n.wire.answered
}

// takeWait bounds how long a client that does not read holds up an answer.
const takeWait = 100 * time.Millisecond

// end is called when the execution has ended, before the answer. It waits until the last figure is
// being marshalled; one that is later is dropped. Over stdio the answer can still overtake the writing,
// and that is why there is Serve. Over SSE what has been marshalled goes into the queue in which the
// answer will be, so there the last figure is one more, which cannot be marshalled: mcp-go then drops
// it without a word, and has queued all others. Over stdio it would log that.
func (n *notifications) end() {
	defer n.ended.Store(true)
	last := n.last.Load()
	if last == nil {
		return
	}
	if n.sse {
		last = &figure{notifications: n, value: math.NaN(), reached: make(chan struct{}, 1)}
		select {
		case n.session.NotificationChannel() <- mcp.JSONRPCNotification{Notification: mcp.Notification{
			Params: mcp.NotificationParams{AdditionalFields: map[string]any{"progress": last}},
		}}:
		default: // full: the client does not read, and the answer queues up behind the rest
			return
		}
	}
	timer := time.NewTimer(takeWait)
	defer timer.Stop()
	select {
	case <-last.reached:
	case <-timer.C:
	}
}

// A figure is a progress whose marshalling is reported to its notifications, and fails when the call has ended.
type figure struct {
	notifications *notifications
	value         float64
	reached       chan struct{}
}

func (f *figure) MarshalJSON() ([]byte, error) {
	select {
	case f.reached <- struct{}{}:
	default: // marshalled twice
	}
	if f.notifications.ended.Load() {
		return nil, errAnswered
	}
	return json.Marshal(f.value)
}

// relatedTo returns meta with the id of the task that a message belongs to, as protocol 2025-11-25 has it. It returns
// meta if run is not a task of that protocol.
func relatedTo(run *adapter.Task, meta map[string]any) map[string]any {
	of, form := run.Handed()
	if form != task.Legacy {
		return meta
	}
	meta = maps.Clone(meta)
	if meta == nil {
		meta = make(map[string]any)
	}
	meta[task.RelatedKey] = map[string]any{"taskId": of}
	return meta
}
