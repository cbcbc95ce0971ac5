package calls

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/stopped"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/waittool"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// client describes the client of a request. version is the protocol version in the request or, if it is "", that of the
// session. declared says that the client supports tasks. Tasks of a server that supports tasks itself are left to the
// server, so for such a server the Caller never declares support.
func (s *Session) client(version string, declared bool) adapter.Caller {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version == "" {
		version = s.version
	}
	return adapter.Caller{Version: version, Declared: declared && !s.ownTasks, Session: s.name}
}

// taskCall returns how package adapter must run a call: its soft limit, and whether it continues as a task or as a
// continuation. It returns the zero Call if no call outlives its answer.
func (s *Session) taskCall(c *call) adapter.Call {
	if s.handles() == nil {
		return adapter.Call{}
	}
	t := adapter.Call{Tool: c.tool, Caller: s.client(c.version, c.declared)}
	t.Soft, t.TaskOnly = s.profile().Soft(c.tool)
	s.mu.Lock()
	if !s.ownTasks {
		t.Asked = c.taskParam
	}
	s.mu.Unlock()
	if t.Soft != 0 && s.name != "" { // a continuation belongs to a session
		t.Continuation = s.waitTools().Continuation
	}
	if c.budget != (policy.Budget{}) {
		t.Within, _ = c.budget.Answer(c.wantsProgress)
		if config, _ := s.profile().Limits.Policy.Resolve(c.tool, 0); t.Continuation != nil && !t.Continuation.Unlisted(config, t.Soft) {
			t.Continuation = nil // the host would refuse the result of a tool that lists an output schema
		}
	}
	return t
}

// refuses returns the error with which adapter.Do refuses the call, or nil.
func (s *Session) refuses(c *call) error {
	none := func(context.Context, *adapter.Task, map[string]json.RawMessage) (*jsonrpc.Message, error) {
		return nil, nil
	}
	_, err := adapter.Do(context.Background(), nil, s.taskCall(c), none, nil, nil)
	return err
}

// encode returns the outcome of a call in the form in which package task stores it for a later request. m is the
// answer, which is nil if the host has cancelled the call.
func encode(m *jsonrpc.Message, err error) task.Answer {
	switch {
	case err != nil:
		fields := map[string]any{"isError": true, "content": []any{map[string]string{"type": "text", "text": stopped.Text(err, "")}}}
		return task.Answer{Result: jsonrpc.Result(nil, fields).Result}
	case m == nil:
		return task.Answer{Error: &task.Error{Code: jsonrpc.InternalError, Message: errHostCancelled.Error()}}
	case m.Error != nil:
		bad := new(task.Error)
		_ = adapter.Unmarshal(m.Error, bad)
		return task.Answer{Error: bad}
	}
	var questions struct{ InputRequests map[string]json.RawMessage }
	_ = adapter.Unmarshal(m.Result, &questions)
	return task.Answer{Result: m.Result, Questions: questions.InputRequests}
}

// resend sends the request of the call to the server again, under a new id, with the host's answers to the server's
// questions and the state that the server has sent with them.
func (c *call) resend(answers map[string]json.RawMessage) {
	s := c.s
	params := jsonrpc.With(c.params, answers, "inputResponses")
	if c.state != nil {
		params = jsonrpc.With(params, c.state, "requestState")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.sent = newID()
	c.answer = make(chan *jsonrpc.Message, 1)
	c.serverAnswered.Store(false)
	c.asking = time.Now()
	s.requests[string(c.sent)] = &inFlight{method: "tools/call", call: c, pulse: &c.pulse}
	s.tokens[string(c.token)] = c
	s.queue(jsonrpc.Request(c.sent, "tools/call", params))
}

// answersItself answers, on another goroutine, a request about the proxy's own tasks or continued calls. It returns
// false, and does nothing, for any other request, and also if no tool has a soft limit, if the server has tasks of its
// own, or if a tool of the server has the name of the proxy's wait tool.
func (s *Session) answersItself(m *jsonrpc.Message) bool {
	if s.handles() == nil {
		return false
	}
	params := m.Fields()
	_, declared := params.Meta.Capabilities.Extensions[task.ExtensionID]
	client := s.client(params.Meta.Version, declared)
	s.mu.Lock()
	ownTasks, tools, theirs := s.ownTasks, s.waiter, s.shadowed[params.Name]
	s.mu.Unlock()
	var answer func(context.Context) (any, error)
	switch {
	case m.Method == "tools/call" && (params.Name == tools.Tool || params.Name == tools.Cancel) && s.name != "" && !theirs:
		answer = func(ctx context.Context) (any, error) {
			arguments, id, refusal := tools.Read(params.Name, params.Arguments)
			if refusal != "" {
				return map[string]any{"isError": true, "content": []any{map[string]string{"type": "text", "text": refusal}}}, nil
			}
			fields, err := s.wait(ctx, m, tools, client, arguments)
			if err != nil {
				return nil, err
			}
			return tools.Sign(fields, id), nil
		}
	case jsonrpc.IsTaskMethod(m.Method) && !ownTasks:
		answer = func(ctx context.Context) (any, error) {
			return adapter.Serve(ctx, s.Tasks, nil, client, m.Method, m.Params)
		}
	default:
		return false
	}
	s.answerHere(m, answer)
	return true
}

// answerHere answers the request m with the result or the error that answer returns. It calls answer on another
// goroutine, with a context that is cancelled if the host cancels the request.
func (s *Session) answerHere(m *jsonrpc.Message, answer func(context.Context) (any, error)) {
	ctx := context.Background()
	joined, leave := toolcall.Join(s.Drain.Context(ctx))
	if m.Method == "tasks/result" || m.Method == "tools/call" { // these may wait, until a shutdown
		ctx = joined
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	s.requests[string(m.ID)] = &inFlight{method: m.Method, cancelLocal: cancel}
	s.mu.Unlock()
	go func() {
		defer leave()
		defer cancel(nil)
		result, err := answer(ctx)
		s.mu.Lock()
		delete(s.requests, string(m.ID))
		s.mu.Unlock()
		if context.Cause(ctx) == errHostCancelled {
			return
		}
		reply := jsonrpc.Result(m.ID, result)
		if bad := (*task.Error)(nil); errors.As(err, &bad) {
			reply = jsonrpc.Refusal(m.ID, bad)
		} else if err != nil {
			reply = jsonrpc.Failure(m.ID, err.Error())
		}
		s.Deliver(reply)
	}()
}

// wait runs a call of one of the two tools for continued calls, with arguments in place of those of m.
func (s *Session) wait(ctx context.Context, m *jsonrpc.Message, tools *waittool.Tools, from adapter.Caller, arguments json.RawMessage) (map[string]any, error) {
	fields := m.Fields()
	budget := s.budgetOf(fields).Shorter(s.profile().Waits)
	call := toolcall.Call{Tool: tools.Tool, Session: s, Meta: map[string]any{policy.BudgetKey: budget.Object()}, Outlives: true}
	if isToken(fields.Meta.ProgressToken) {
		call.Token = fields.Meta.ProgressToken
		call.Send = func(_ context.Context, n progress.Notification) error {
			out := jsonrpc.Notification("notifications/progress", n)
			out.About = string(m.ID)
			s.Deliver(out)
			return nil
		}
	}
	server := &toolcall.Settings{Limits: new(timeout.Config), Interval: s.profile().Keep}
	return toolcall.Do(s.Drain.Context(ctx), server, call, func(ctx context.Context) (map[string]any, error) {
		params := jsonrpc.Encode(map[string]any{"arguments": arguments, "inputResponses": fields.InputResponses})
		return adapter.Serve(ctx, s.Tasks, tools.Continuation, from, "tools/call", params)
	})
}
