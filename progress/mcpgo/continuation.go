package mcpgo

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// WithContinuation answers a call that has run for soft, from a client that can take no task, with
// a result that says that it is still running, and how to wait: the server has one more tool for
// that, [task.DefaultWaitTool]. The tool runs on, under its limits. So no call is lost to a client
// that waits for 60 s and no longer: let soft be less than that. See [task.Continuation] for 0, and
// for tools with a soft limit of their own.
//
// Tools that may run for longer than that list no output schema, since a call that goes on has no
// structured content yet. A session that ends aborts what it has left running.
//
// It is for [Install], and works on all transports; with [WithTasks], for the clients that know no
// tasks.
func WithContinuation(soft time.Duration) Option {
	return optionFunc(func(s *settings) { s.continued().After = soft })
}

// WithWaitTool names the tool that [WithContinuation] adds, in place of wait_for_result.
func WithWaitTool(name string) Option {
	return optionFunc(func(s *settings) { s.continued().Tool = name })
}

func (s *settings) continued() *task.Continuation {
	if s.continuation == nil {
		s.continuation = new(task.Continuation)
	}
	return s.continuation
}

// continueIn adds the wait tool and the hooks that a continuation needs.
func (s *settings) continueIn(of *server.MCPServer, h *server.Hooks) {
	h.AddAfterListTools(func(_ context.Context, _ any, _ *mcp.ListToolsRequest, res *mcp.ListToolsResult) {
		for i := range res.Tools {
			t := &res.Tools[i]
			limits, err := s.calls.Declaration(t.Name)
			soft, _ := s.calls.Policy.Soft(t.Name)
			if err == nil && s.continuation.Unlisted(timeout.Config{Total: limits.Total, Idle: limits.Idle, Grace: limits.Grace}, soft) {
				t.OutputSchema, t.RawOutputSchema = mcp.ToolOutputSchema{}, nil
			}
		}
	})
	h.AddOnUnregisterSession(func(ctx context.Context, session server.ClientSession) {
		if orderOf(session) == locked && ctx.Err() != nil {
			return // over Streamable HTTP a stream beside the calls has ended, and not the session
		}
		if id := session.SessionID(); id != "" {
			s.tasks.EndSession(id)
		}
	})
	raw, _ := json.Marshal(s.continuation.Definition())
	var definition mcp.Tool
	if err := json.Unmarshal(raw, &definition); err != nil {
		panic("mcpgo: the wait tool: " + err.Error())
	}
	of.AddTool(definition, s.wait)
}

// isWait reports whether a call is one of the wait tool, which is not to be stopped itself.
func (s *settings) isWait(name string) bool {
	return s.continuation != nil && name == s.continuation.Name()
}

// wait is the wait tool.
func (s *settings) wait(ctx context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	arguments, err := json.Marshal(request.GetRawArguments())
	if err != nil {
		return nil, err
	}
	answers := make(map[string]json.RawMessage, len(request.Params.InputResponses))
	for key, r := range request.Params.InputResponses {
		if answers[key], err = json.Marshal(r); err != nil {
			return nil, err
		}
	}
	var of struct {
		ID string `json:"id"`
	}
	if session := server.ClientSessionFromContext(ctx); session != nil && json.Unmarshal(arguments, &of) == nil {
		defer s.waits.begin(waitKey{session.SessionID(), of.ID}, ctx)()
	}
	fields, err := s.tasks.Wait(ctx, s.continuation, task.Wait{Arguments: arguments, Answers: answers, Client: s.client(ctx)})
	if err == nil {
		return resultOf(fields)
	}
	var refused *task.Error
	if w := wireOf(ctx, server.ClientSessionFromContext(ctx)); w != nil && errors.As(err, &refused) {
		return w.refuse(s.client(ctx).Version, refused), nil
	}
	return nil, err
}

// unlimited are the settings of the wait tool.
func (s *settings) unlimited() *settings {
	own := *s
	own.calls = toolcall.Settings{
		Policy: s.calls.Policy, Interval: s.calls.Interval,
		Options: append(s.calls.Options[:len(s.calls.Options):len(s.calls.Options)], timeout.Config{}),
	}
	return &own
}

// A waitKey is a continued call and the session of who waits for it: an id alone is not a reason to
// send somebody questions.
type waitKey struct{ session, id string }

// waits are the calls of the wait tool that are under way, over whose streams a question may go.
type waits struct {
	mu    sync.Mutex
	byKey map[waitKey][]context.Context
	more  chan struct{} // closed by the next one, if somebody waits for that
}

func (w *waits) begin(key waitKey, ctx context.Context) (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byKey == nil {
		w.byKey = make(map[waitKey][]context.Context)
	}
	w.byKey[key] = append(w.byKey[key], ctx)
	if w.more != nil {
		close(w.more)
		w.more = nil
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.byKey[key] = slices.DeleteFunc(w.byKey[key], func(c context.Context) bool { return c == ctx })
		if len(w.byKey[key]) == 0 {
			delete(w.byKey, key)
		}
	}
}

// next returns the context of a call of the wait tool, and waits for one until ctx ends.
func (w *waits) next(ctx context.Context, key waitKey) (context.Context, error) {
	for {
		w.mu.Lock()
		for _, c := range w.byKey[key] {
			if c.Err() == nil {
				w.mu.Unlock()
				return c, nil
			}
		}
		if w.more == nil {
			w.more = make(chan struct{})
		}
		more := w.more
		w.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
