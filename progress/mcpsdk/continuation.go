package mcpsdk

import (
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// WithContinuation continues calls that take long, of clients without tasks. A call that has run for soft
// is answered with an ordinary result: "Still running", and the name of another tool, wait_for_result, that
// waits for the rest. [Install] adds that tool. The tool that was called runs on under its limits. If soft is
// shorter than the timeout of a client, that client loses no call. If soft is 0 or less, only the
// calls of tools that have a soft limit are continued; see [adapter.Continuation].
//
// Without [WithTasks], Install keeps the continued calls itself. If each request has its own Server,
// use WithTasks, so that all of them share the calls.
func WithContinuation(soft time.Duration) InstallOption {
	return installOption(func(s *settings) {
		if s.continuation == nil {
			s.continuation = new(adapter.Continuation)
		}
		s.continuation.After = soft
	})
}

// WithWaitTool names the tool that [WithContinuation] adds, in place of wait_for_result.
func WithWaitTool(name string) InstallOption {
	return installOption(func(s *settings) {
		if s.continuation == nil {
			s.continuation = new(adapter.Continuation)
		}
		s.continuation.Tool = name
	})
}

// waitForResult is the wait tool.
func (s *settings) waitForResult(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var answers map[string]json.RawMessage
	if req.Params.InputResponses != nil {
		data, err := json.Marshal(req.Params.InputResponses)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(data, &answers); err != nil {
			return nil, err
		}
	}
	fields, err := s.continuation.Wait(ctx, s.tasks, s.callerOf(req.Session, req.Extra, req.Params.Meta), req.Params.Arguments, answers)
	if err != nil {
		return nil, wireError(err)
	}
	return asResult(req, fields)
}

// waitServer is the wait tool's: it has limits of its own, and what it waits for has others.
func waitServer(calls toolcall.Settings) toolcall.Settings {
	calls.Options = append(calls.Options[:len(calls.Options):len(calls.Options)], timeout.Config{})
	calls.MetaTimeout, calls.ArgumentTimeout = false, false
	return calls
}
