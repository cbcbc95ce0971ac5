package mcpgo

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// WithIdempotency answers a repeated call with the result of the first, so that a client may send a
// call again if it got no answer. It is for [Install]. Two calls are the same if they have the same
// [request.IdempotencyKey], client, tool and arguments. A call that comes while the first is running
// waits for it, and gets no progress. Three kinds of calls leave no result, so a repetition is made: a
// call that was aborted, for example because its client gave up, one that ended with an error that is
// not the tool's own, and one whose result asks a person.
//
// In this process 1000 results are kept, of at most 16 MiB together, for 10 min. Beyond that the oldest goes
// of the client that takes the largest part.
func WithIdempotency() InstallOption {
	return installOption(func(s *settings) { s.repeats = new(adapter.Answers[*mcp.CallToolResult]) })
}

// once is a call that may have come before.
func (s *settings) once(next server.ToolHandlerFunc) server.ToolHandlerFunc {
	if s.repeats == nil {
		return next
	}
	return func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		p := r.Params
		key := ""
		if p.Meta != nil {
			key, _ = p.Meta.AdditionalFields[request.IdempotencyKey].(string)
		}
		if key == "" || p.Task != nil {
			return next(ctx, r)
		}
		caller := s.client(ctx)
		content := []any{p.Name, p.Arguments, p.InputResponses, p.RequestState}
		res, err := s.repeats.Do(ctx, caller, key, content, sizeOfAnswer, func() (*mcp.CallToolResult, error) { return next(ctx, r) })
		if res != nil {
			out := *res // mcp-go may write to what it sends
			res = &out
		}
		return res, err
	}
}

// sizeOfAnswer returns how many bytes an answer takes, and less than 0 for one that is not to be kept.
func sizeOfAnswer(r *mcp.CallToolResult) int {
	if r == nil || r.NeedsInput() {
		return -1
	}
	if r.Meta != nil {
		if o, ok := r.Meta.AdditionalFields[toolcall.OutcomeKey].(toolcall.Outcome); ok && o.ExitCode == timeout.ExitAborted {
			return -1
		}
	}
	data, err := json.Marshal(r)
	if err != nil {
		return -1
	}
	return len(data)
}
