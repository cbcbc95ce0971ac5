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

// streamable reports whether a session uses Streamable HTTP.
func streamable(session server.ClientSession) bool {
	_, ok := session.(server.SessionWithStreamableHTTPConfig)
	return ok
}

// local reports whether a session is the only session of its connection: over stdio, or with client and server in one
// process.
func local(session server.ClientSession) bool {
	_, inProcess := session.(*server.InProcessSession)
	return inProcess || stdio(session)
}

func stdio(session server.ClientSession) bool {
	return session != nil && session.SessionID() == "stdio" // mcp-go does not export the type of the session
}

// notifications sends the progress notifications of one call. Without a wire, they go into mcp-go's queue of the
// session, and a goroutine of the transport marshals and writes them. Over Streamable HTTP mcp-go empties that queue
// before it writes the answer. Over SSE and stdio the answer does not pass through the queue and could overtake a
// notification; there the progress is a figure, which cannot be marshalled after the end of the call (SPEC 7.4).
type notifications struct {
	server  *server.MCPServer
	session server.ClientSession
	wire    *wire // nil if mcp-go has to send the notifications
	sse     bool
	run     *adapter.Task // nil if the call cannot become a task

	last  atomic.Pointer[figure] // the newest figure in the queue, or nil
	ended atomic.Bool            // set by end; a later notification is dropped
}

func newNotifications(ctx context.Context, run *adapter.Task, header http.Header) *notifications {
	session := server.ClientSessionFromContext(ctx)
	n := &notifications{server: server.ServerFromContext(ctx), session: session, run: run}
	if streamable(session) || stdio(session) {
		n.wire = wireOf(ctx, session)
	} else if header != nil {
		_, n.sse = session.(server.SessionWithTools) // only mcp-go's sessions over HTTP implement this
	}
	return n
}

var errNoServer = errors.New("mcpgo: the context has no server")

// send implements progress.Notifier for the call.
func (n *notifications) send(ctx context.Context, p progress.Notification) error {
	if n.server == nil {
		return errNoServer // the handler was called directly, without a server
	}
	params := map[string]any{"progressToken": p.ProgressToken, "progress": p.Progress}
	if p.Total > 0 {
		params["total"] = p.Total
	}
	if p.Message != "" {
		params["message"] = p.Message
	}
	return n.run.Notify(func(id string, form task.Form) error { return n.deliver(ctx, params, p.Progress, id, form) })
}

func (n *notifications) deliver(ctx context.Context, params map[string]any, progress float64, id string, form task.Form) error {
	if err := n.write(params, id, form); err != errNoWire {
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

// write writes a progress notification to the wire. It returns errNoWire if mcp-go has to send it.
func (n *notifications) write(params map[string]any, id string, form task.Form) error {
	if n.wire == nil {
		return errNoWire
	}
	if !n.session.Initialized() {
		return server.ErrNotificationNotInitialized
	}
	if s, ok := n.session.(server.SessionWithStreamableHTTPConfig); ok {
		if id != "" {
			return errNoWire // mcp-go may be writing the handle as plain JSON, which an event must not precede
		}
		s.UpgradeToSSEWhenReceiveNotification() // after this event, mcp-go must send the answer as an event too
	}
	if form == task.Legacy {
		params = maps.Clone(params)
		params[metaKey] = map[string]any{task.RelatedKey: map[string]any{"taskId": id}} // which the protocol requires
	}
	return n.wire.notify(methodProgress, params, n.ended.Load)
}

// answered returns the Answered field for the toolcall.Call; nil means that no function reports the answer.
func (n *notifications) answered() func(leave func()) {
	if n.wire == nil {
		return nil
	}
	return n.wire.answered
}

// takeWait bounds how long end waits, and with that how long a client that does not read can delay an answer.
const takeWait = 100 * time.Millisecond

// end waits, after the execution and before the answer, until mcp-go marshals the newest figure, for at most takeWait.
// Figures that are marshalled later are dropped. Over stdio without [Serve] the answer can still overtake that last
// write. Over SSE mcp-go moves marshalled notifications into the queue of the answers. There end adds a figure that
// cannot be marshalled: when mcp-go tries, it has moved all others, and it drops this one silently. Over stdio mcp-go
// would log the failure.
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
		default: // the queue is full, because the client does not read
			return
		}
	}
	select {
	case <-last.reached:
	case <-time.After(takeWait):
	}
}

// A figure is the progress value of a queued notification. MarshalJSON signals reached, and fails after the end of the
// call, so that mcp-go drops the notification.
type figure struct {
	notifications *notifications
	value         float64
	reached       chan struct{}
}

func (f *figure) MarshalJSON() ([]byte, error) {
	select {
	case f.reached <- struct{}{}:
	default: // already signalled
	}
	if f.notifications.ended.Load() {
		return nil, errAnswered
	}
	return json.Marshal(f.value)
}
