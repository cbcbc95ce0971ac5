package calls

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/calllog"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/stopped"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// newCall returns the call of a tools/call request, and the request to be sent to the server. That request always has a
// progress token, even if the host has not requested progress, because progress is a sign of life. The caller must call
// left when the call has been answered.
func (s *Session) newCall(m *jsonrpc.Message) (*jsonrpc.Message, *call) {
	params := m.Fields()
	c := &call{
		s: s, id: m.ID, sent: m.ID, tool: params.Name, token: params.Meta.ProgressToken, version: params.Meta.Version,
		taskParam: params.Task, asking: time.Now(), budget: s.budgetOf(params),
		answer: make(chan *jsonrpc.Message, 1), lost: make(chan struct{}),
	}
	_, c.declared = params.Meta.Capabilities.Extensions[task.ExtensionID]
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	if c.wantsProgress = isToken(c.token); !c.wantsProgress {
		c.token = newID()
		m = m.WithMeta("progressToken", c.token)
	}
	c.params = m.Params
	t := s.taskCall(c)
	c.runsOn = t.Continuation != nil || t.Asked != nil || t.Soft != 0 && c.declared
	// The call joins the Drain before its goroutine starts, so that a shutdown in between waits for its answer.
	_, c.began = toolcall.Join(s.Drain.Context(context.Background()))
	c.leave(c.began)
	return m, c
}

// supervise runs the call, whose request has been sent to the server, and sends the answer to the host.
func (c *call) supervise() {
	s := c.s
	c.keepAlive()
	reply, err := adapter.Do(context.Background(), s.handles(), s.taskCall(c), c.execute, encode, c.handle)
	if bad := (*task.Error)(nil); errors.As(err, &bad) { // refused, not executed
		c.stopServer(err)
		c.forget()
		reply = jsonrpc.Refusal(c.id, bad)
	}
	if reply != nil {
		s.Deliver(reply)
	}
	c.left()
}

// handle returns the answer to a call that has become a task or a continuation.
func (c *call) handle(record *task.Record, fields map[string]any) (*jsonrpc.Message, error) {
	c.s.mu.Lock()
	c.handleSent = true
	c.s.mu.Unlock()
	if record.Form != task.Legacy { // the progress of a legacy task continues
		c.close()
	}
	if record.Form == task.Continued {
		return jsonrpc.Result(c.id, c.s.waitTools().Sign(fields, record.ID)), nil
	}
	return jsonrpc.Result(c.id, fields), nil
}

// execute runs the call under its limits and returns the answer, or nil if the host has cancelled the call. run is the
// task of the call, or nil. If answers is not nil, execute first sends the request again, with these answers to the
// server's questions. The error is always nil.
func (c *call) execute(ctx context.Context, run *adapter.Task, answers map[string]json.RawMessage) (*jsonrpc.Message, error) {
	s, begun := c.s, time.Now()
	c.runs(run)
	if answers != nil {
		c.resend(answers)
	}
	var snapshot timeout.Snapshot
	var began atomic.Bool
	var finished atomic.Pointer[timeout.Snapshot] // nil if the hooks still wait for the log
	server := *s.profile().Limits
	server.Options = append(server.Options[:len(server.Options):len(server.Options)], timeout.WithHooks(timeout.Hooks{
		Started: func(_ context.Context, s timeout.Snapshot) {
			began.Store(true)
			c.endless.Store(s.ObserveOnly || s.Limits.Idle <= 0 && s.Limits.Total <= 0)
		},
		Finished: func(_ context.Context, s timeout.Snapshot) { finished.Store(&s) },
	}))
	joined, stop := context.WithCancelCause(s.Drain.Context(ctx))
	defer stop(nil)
	defer context.AfterFunc(c.ctx, func() { stop(context.Cause(c.ctx)) })()
	var token any // tells toolcall.Do only that the host receives progress, which the proxy itself sends
	if c.wantsProgress {
		token = string(c.id)
	}
	m, err := toolcall.Do(joined, &server, toolcall.Call{
		Tool: c.tool, Token: token, Session: s, Answered: func(leave func()) { c.leave(leave) },
		Meta: map[string]any{policy.BudgetKey: c.budget.Object()}, Outlives: run != nil,
	}, c.wait)
	if s := finished.Load(); s != nil {
		snapshot = *s
	}
	if !began.Load() { // the call did not begin, because the proxy is shutting down
		c.stopServer(err)
	}
	c.close()
	reply := c.reply(m, err)
	c.state = stateOf(m)
	c.forget()
	c.log(m, err, snapshot, begun)
	if reply != nil && reply != m { // the reply is not the server's answer
		attrs := []any{"tool", c.tool, "error", stopped.Message(err), "elapsed", snapshot.Elapsed.Round(time.Millisecond)}
		if limit := (*timeout.Error)(nil); errors.As(err, &limit) && limit.Cause != nil && limit.Timeout() {
			attrs = append(attrs, "cause", limit.Cause.Error())
		}
		if tree := c.seen(); tree != "" {
			attrs = append(attrs, "tree", tree)
		}
		s.Logger.Warn("call not answered by the server", attrs...)
	}
	return reply, nil
}

// log writes the line of the call to the call log. s is the last snapshot of its execution, or zero.
func (c *call) log(m *jsonrpc.Message, err error, s timeout.Snapshot, begun time.Time) {
	line := calllog.Line{Time: begun, Tool: c.tool, ID: c.id, Tree: c.seen()}
	if m != nil {
		line.Bytes = len(m.Raw)
	}
	if s.Start.IsZero() { // the call never began
		s.Limits, _ = c.s.profile().Limits.Policy.Resolve(c.tool, 0)
	}
	c.s.Log.Write(line, s, err)
}

// seen describes the server's processes at the time when a limit fired. It returns "" if no limit has fired or the
// processes were not observed.
func (c *call) seen() string {
	if tree := c.tree.Load(); tree != nil {
		return tree.String()
	}
	return ""
}

// stateOf returns the requestState of the result in m, or nil if it has none. A server adds a requestState to its
// questions, and must get it back with the answers.
func stateOf(m *jsonrpc.Message) json.RawMessage {
	var result struct{ RequestState json.RawMessage }
	if m != nil && m.Result != nil && bytes.Contains(m.Result, []byte(`"requestState"`)) {
		_ = adapter.Unmarshal(m.Result, &result)
	}
	return result.RequestState
}

// leave registers a function to be called when the call has been answered. If the call has been answered already, leave
// calls the function itself.
func (c *call) leave(leave func()) {
	c.answering.Lock()
	defer c.answering.Unlock()
	if c.answered { // with a handle, after which the call has continued
		leave()
		return
	}
	c.leaves = append(c.leaves, leave)
}

// left records that the call has been answered, and calls the registered functions.
func (c *call) left() {
	c.answering.Lock()
	defer c.answering.Unlock()
	for _, leave := range c.leaves {
		leave()
	}
	c.leaves = nil
	c.answered = true
}

// lastAnswer returns the answer that has arrived before the server ended, or why the server has ended. A select between the
// two would choose at random.
func (c *call) lastAnswer() (*jsonrpc.Message, error) {
	select {
	case m := <-c.answer:
		return m, failed(m)
	default:
		return nil, c.lostErr
	}
}

// wait is the function of the call's execution. It returns the server's answer and toolcall.ErrResult if that is a
// failure. If the server ends first, it returns why. If ctx ends first, it cancels the request at the server and waits
// for a partial result; see afterStop.
func (c *call) wait(ctx context.Context) (*jsonrpc.Message, error) {
	c.began() // toolcall.Do has joined the Drain too, and a shutdown would count two calls
	c.pulse.Begin(ctx, c.s.processes, c.s.Alive, &c.s.load)
	select {
	case m := <-c.answer:
		c.pulse.End(false)
		return m, failed(m)
	case <-c.lost:
		if c.lostErr != toolcall.ErrShutdown {
			c.pulse.End(false)
			return c.lastAnswer()
		}
		<-ctx.Done() // the shutdown aborts the execution too, and its error is the outcome
	case <-ctx.Done():
	}
	var stopped *timeout.Error
	tree := c.pulse.End(errors.As(context.Cause(ctx), &stopped) && stopped.Timeout())
	c.tree.Store(&tree)
	if up := c.stopServer(context.Cause(ctx)); up != nil {
		s := timeout.FromContext(ctx).Snapshot()
		return c.afterStop(up, s.Limits, s.Elapsed)
	}
	select {
	case m := <-c.answer: // before the server ended
		return m, failed(m)
	default:
		return nil, nil
	}
}
