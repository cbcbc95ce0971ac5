package mcpsdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// FollowTasks has c take tasks for its calls: where a server answers a tools/call with a task,
// CallTool asks for the task until that has ended, as often as the server wants it to, and returns its
// result, as if the call had just taken longer. Questions of the task go to the handlers of c. When the
// caller's context ends, the task is cancelled.
//
// With protocol 2026-07-28 every call says that it may be answered with a task. With 2025-11-25 the
// client has the say: a tool is called as a task if the server has the capability and lists the tool
// with a taskSupport of "optional" or "required". Where c has not listed the tools, they are listed
// before the first call. Other versions have no tasks. Which version is spoken depends on the server
// too: one on [mcp.NewStreamableHTTPHandler] speaks 2026-07-28 only where its options have Stateless,
// and 2025-11-25 where they are nil.
//
// The transports of c must be wrapped with [WrapClientTransport]: the SDK does not know tasks, and
// would take a handle for an empty result. Where one is not, no tasks are asked for.
//
//	mcpsdk.Limit(client, limits, perMethod)
//	mcpsdk.FollowTasks(client)
//	session, err := client.Connect(ctx, mcpsdk.WrapClientTransport(transport), nil)
//
// Call it after [Limit]: then the limits are those of each request of which a call is made, and
// the context bounds the call. Before Limit, the limits of tools/call are those of the whole, which
// no progress renews once there is a task. Either way a request for a task is one of tools/call to
// the middleware of c.
//
// A request for a task that is not answered is made again, with longer waits in between, up to 10 s:
// after a connection that was refused or lost, a limit of the request, an HTTP status of 500, 502,
// 503, 504 or 429, and a JSON-RPC error with the code -32603, which is what a server answers whose
// store is away. It goes on for as long as the server has said that it keeps the task or, where it
// has not said, for 10 min, and then the error is that of the last request. The caller's context
// ends it before. Any other error ends the call at once, as of a task that is unknown, or of an
// authorization that was not given. A tools/call is never sent again.
//
// A task that has failed is the JSON-RPC error that it failed with; one that somebody else has
// cancelled, an error for which errors.Is finds [task.ErrCancelled].
//
// Call it once for a client, before it connects.
func FollowTasks(c *mcp.Client) {
	servers := new(perSession[taskServer])
	c.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			server := servers.of(req.GetSession())
			switch {
			case method == methodCall:
				return follow(ctx, method, req, next, server)
			case method == methodInitialize && server != nil, method == methodList && server.hasTasks():
				return server.learn(ctx, method, req, next)
			}
			return next(ctx, method, req)
		}
	})
	c.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "notifications/tools/list_changed" {
				servers.of(req.GetSession()).forget()
			}
			return next(ctx, method, req)
		}
	})
}

// How often a task is asked for, whatever the server says.
const (
	minPoll = 50 * time.Millisecond
	maxPoll = 30 * time.Second
)

// cancelTime is for how long a tasks/cancel is tried, cancelAgain how far apart, and cancelWait how
// long the caller waits for it.
const (
	cancelTime  = 5 * time.Second
	cancelAgain = 500 * time.Millisecond
	cancelWait  = 250 * time.Millisecond
)

func follow(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler, server *taskServer) (mcp.Result, error) {
	f := &followed{answered: make(map[string]bool), next: methodGet}
	f.legacy = server.hasTasks() && server.takesTask(ctx, req, next)
	send := func(ctx context.Context, what string) (mcp.Result, error) {
		f.ask(what)
		ctx, done := context.WithCancel(context.WithValue(ctx, followKey{}, f))
		defer done()
		return next(ctx, method, req)
	}
	res, err := send(ctx, methodCall)
	id, poll, state := f.state()
	if id == "" {
		if wire := (*jsonrpc.Error)(nil); f.legacy && errors.As(err, &wire) && wire.Code == jsonrpc.CodeMethodNotFound {
			server.forget() // it may be called as a task no more
		}
		return res, err
	}
	var lost adapter.Outage
	for wait := poll; !state.Final(); {
		what := f.nextMethod()
		if what == methodGet || lost.Begun() {
			pause(ctx, min(max(wait, minPoll), maxPoll))
		}
		if ctx.Err() == nil {
			res, err = send(ctx, what)
		}
		if ctx.Err() != nil {
			f.cancel(ctx, send)
			return nil, ctx.Err()
		}
		if err != nil && !f.answeredWith(err) {
			if !f.lost(err) || f.fetchFailed(what, err) {
				return nil, err
			}
			var more bool
			if wait, more = lost.Next(max(poll, minPoll), f.keptUntil()); !more {
				return nil, fmt.Errorf("the task %q: %w", id, err)
			}
			continue
		}
		lost = adapter.Outage{}
		_, poll, state = f.state()
		wait = poll
	}
	if state == task.Cancelled {
		return nil, task.ErrCancelled
	}
	return res, err
}

// pause waits for d, and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// cancel cancels the task, as often as it takes, for a caller that does not wait for long.
func (f *followed) cancel(ctx context.Context, send func(context.Context, string) (mcp.Result, error)) {
	cancelled := make(chan struct{})
	go func() {
		defer close(cancelled)
		ctx, done := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
		defer done()
		for {
			if _, err := send(ctx, methodCancel); err == nil || !f.lost(err) || !pause(ctx, cancelAgain) {
				return
			}
		}
	}()
	wait := time.NewTimer(cancelWait)
	defer wait.Stop()
	select {
	case <-cancelled:
	case <-wait.C:
	}
}

// What a request of a followed call is on the wire.
const (
	methodCall   = "tools/call"
	methodGet    = "tasks/get"
	methodUpdate = "tasks/update"
	methodCancel = "tasks/cancel"
)

type followKey struct{}

// A followed call is one that may become a task. To the SDK, each of its requests is a tools/call
// that is answered with a tool's result; what they are on the wire is the business of the
// transport, which has the followed call from the context. The requests come one after the other.
type followed struct {
	mu       sync.Mutex
	what     string
	id       string
	status   task.Status
	poll     time.Duration
	began    time.Time       // when its handle came
	expires  time.Time       // until then the server keeps it; zero is not known
	answered map[string]bool // the questions, by key
	answers  json.RawMessage // that the server may not have yet
	failed   error
	cut      bool // the newest answer was cut off
	denied   bool // the newest request was answered with 401 or 403

	next string // what is to be asked next: methodGet, or methodResult

	legacy  bool // as in protocol 2025-11-25
	refused bool // the newest tasks/result was answered with -32603

	listening bool            // to the answer of another request
	heard     json.RawMessage // that
}

func (f *followed) nextMethod() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next
}

func (f *followed) ask(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.what, f.cut, f.denied = what, false, false
}

func (f *followed) cutOff() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut = true
}

// deny keeps whether a request was refused for want of an authorization. The SDK asks its OAuthHandler
// for one then, and if it gets none, its error is like that of a connection that was refused.
func (f *followed) deny(status int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.denied = status == http.StatusUnauthorized || status == http.StatusForbidden
}

func (f *followed) keptUntil() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.expires
}

// lost reports whether err says that nobody has answered, or not yet.
func (f *followed) lost(err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.denied {
		return false // whoever has declined to authorize it is not asked again
	}
	var wire *jsonrpc.Error
	return f.cut || transient(err) || errors.As(err, &wire) && wire.Code == jsonrpc.CodeInternalError
}

func (f *followed) state() (id string, poll time.Duration, _ task.Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.id, f.poll, f.status
}

// answeredWith reports whether err is the task's own.
func (f *followed) answeredWith(err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	var wire *jsonrpc.Error
	return f.failed != nil && errors.As(err, &wire)
}

// request returns what goes out in place of a tools/call: the method, the params, and the task's id,
// which is empty for the call itself.
func (f *followed) request(params json.RawMessage) (method, id string, _ json.RawMessage, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listening {
		return f.what, "", params, nil
	}
	var p map[string]json.RawMessage
	if err := json.Unmarshal(params, &p); err != nil {
		return "", "", nil, err
	}
	var meta map[string]json.RawMessage
	if p["_meta"] != nil {
		if err := json.Unmarshal(p["_meta"], &meta); err != nil {
			return "", "", nil, err
		}
	}
	if f.legacy {
		return f.legacyRequest(p, meta)
	}
	var version string
	_ = json.Unmarshal(meta[mcp.MetaKeyProtocolVersion], &version)
	if version < sinceResultType {
		return methodCall, "", params, nil
	}
	if meta[mcp.MetaKeyClientCapabilities], err = declaring(meta[mcp.MetaKeyClientCapabilities]); err != nil {
		return "", "", nil, err
	}
	if f.what != methodCall {
		delete(meta, progressTokenKey)
	}
	if p["_meta"], err = json.Marshal(meta); err != nil {
		return "", "", nil, err
	}
	method = f.what
	switch {
	case method == methodCall:
	case p["inputResponses"] != nil && method == methodGet:
		method = methodUpdate
		var answers map[string]json.RawMessage
		if err := json.Unmarshal(p["inputResponses"], &answers); err != nil {
			return "", "", nil, err
		}
		for key := range answers {
			f.answered[key] = true
		}
		f.answers = p["inputResponses"]
		p = map[string]json.RawMessage{"_meta": p["_meta"], "inputResponses": f.answers}
	case f.answers != nil && method == methodGet:
		method = methodUpdate // it was lost; the server passes over answers that it has
		p = map[string]json.RawMessage{"_meta": p["_meta"], "inputResponses": f.answers}
	default:
		p = map[string]json.RawMessage{"_meta": p["_meta"]}
	}
	if method != methodCall {
		id = f.id
		if p["taskId"], err = json.Marshal(id); err != nil {
			return "", "", nil, err
		}
	}
	params, err = json.Marshal(p)
	return method, id, params, err
}

// declaring returns a client's capabilities with tasks among them.
func declaring(capabilities json.RawMessage) (json.RawMessage, error) {
	var c, extensions map[string]json.RawMessage
	if len(capabilities) > 0 {
		if err := json.Unmarshal(capabilities, &c); err != nil {
			return nil, err
		}
	}
	if len(c["extensions"]) > 0 {
		if err := json.Unmarshal(c["extensions"], &extensions); err != nil {
			return nil, err
		}
	}
	if c == nil {
		c = make(map[string]json.RawMessage)
	}
	if extensions == nil {
		extensions = make(map[string]json.RawMessage)
	}
	extensions[task.ExtensionID] = json.RawMessage("{}")
	var err error
	if c["extensions"], err = json.Marshal(extensions); err != nil {
		return nil, err
	}
	return json.Marshal(c)
}

// maxTTL is a century, in milliseconds.
const maxTTL = 100 * 365 * 24 * 3600e3

// nothingYet is what a tool's result looks like to the SDK as long as there is none.
var nothingYet = json.RawMessage(`{"resultType":"complete","content":[]}`)

// response returns what comes in, in place of the result or the error of a request of a method.
func (f *followed) response(method string, result json.RawMessage, failed *jsonrpc.Error) (json.RawMessage, *jsonrpc.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if failed != nil {
		return nil, failed
	}
	if f.listening {
		f.heard = append(json.RawMessage(nil), result...)
		return result, nil
	}
	if f.legacy && method != methodCancel {
		return f.legacyResponse(method, result)
	}
	if method == methodUpdate {
		f.answers = nil
	}
	if method == methodUpdate || method == methodCancel {
		return nothingYet, nil
	}
	var t struct {
		ResultType string                     `json:"resultType"`
		ID         string                     `json:"taskId"`
		Status     task.Status                `json:"status"`
		Poll       float64                    `json:"pollIntervalMs"`
		TTL        *float64                   `json:"ttlMs"`
		Questions  map[string]json.RawMessage `json:"inputRequests"`
		Result     json.RawMessage            `json:"result"`
		Error      *jsonrpc.Error             `json:"error"`
	}
	err := json.Unmarshal(result, &t)
	if method == methodCall && (err != nil || t.ResultType != "task") {
		return result, nil // the tool's own
	}
	if err != nil || t.ID == "" || method == methodGet && t.ID != f.id {
		return nil, errNoTask()
	}
	f.id, f.status = t.ID, t.Status
	f.told(t.Poll, t.TTL)
	switch t.Status {
	case task.Completed:
		if len(t.Result) == 0 {
			break // a handle has none
		}
		return t.Result, nil
	case task.Failed:
		if t.Error == nil {
			if method == methodCall {
				break
			}
			t.Error = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the task has failed"}
		}
		f.failed = t.Error
		return nil, t.Error
	case task.InputRequired:
		open := make(map[string]json.RawMessage)
		for key, question := range t.Questions {
			if !f.answered[key] {
				open[key] = question
			}
		}
		if len(open) == 0 {
			break
		}
		if data, err := json.Marshal(map[string]any{"resultType": "input_required", "inputRequests": open}); err == nil {
			return data, nil
		}
	}
	if method == methodCall && t.Status.Final() {
		f.status = task.Working // the result is to be fetched all the same
	}
	return nothingYet, nil
}
