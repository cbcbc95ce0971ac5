package mcpsdk

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Handler returns h under the limits of o, as [Install] does for all tools of a server. The limits are those of the
// name under which the tool is called:
//
//	mcp.AddTool(server, tool, mcpsdk.Handler(search, &mcpsdk.Options{Limits: &timeout.Config{Total: time.Minute}}))
//
// If the server has Install too, both limits hold, and progress is sent once. ServerSession.Elicit holds the idle check
// only with Install; without it, call ServerSession.Elicit under [progress.Await]. Handler panics with a
// [*timeout.ConfigError] if h is nil, or if o has a field that only Install accepts.
//
// What a stopped handler returns decides what the client gets:
//
//   - A nil error: its result and its output are the partial result. The output must match the tool's
//     output schema. Otherwise the SDK makes a JSON-RPC error, which only Install turns back into the
//     result of a stopped tool.
//   - An error, or nothing because it does not return: the client gets a result with a text and no output,
//     because a wrapper without an output can only return an error to the SDK. With Install, the result has
//     a [toolcall.Outcome].
//   - If Out is any, the result has a [toolcall.Outcome] in either case.
func Handler[In, Out any](h mcp.ToolHandlerFor[In, Out], o *Options) mcp.ToolHandlerFor[In, Out] {
	if h == nil {
		panic(&timeout.ConfigError{Key: "handler", Value: "nil", Accepted: "a handler"})
	}
	if o != nil && !reflect.ValueOf(o.Await).IsZero() {
		panic(&timeout.ConfigError{Key: "Options.Await", Value: "set for a Handler", Accepted: "a field of the Options of Install"})
	}
	calls, _ := adapter.NewServer(o, true).Settings("")
	return func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		call := newCall(ctx, req, nil, whenAnswered(ctx), false)
		var near *toolcall.Outcome
		call.NearLimit = func(o toolcall.Outcome) { near = &o }
		ctx, release := untilGone(ctx, req.Session)
		defer release()
		r, err := toolcall.Do(ctx, calls, call, func(ctx context.Context) (r returned[Out], _ error) {
			r.res, r.out, r.err = h(ctx, req, in)
			r.hasReturned = true
			return r, r.err
		})
		if _, ok := toolcall.OutcomeOf(err); ok { // this execution was stopped, or the tool returns such an error
			return r.stopped(err)
		}
		if near != nil && err == nil {
			if r.res == nil {
				r.res = new(mcp.CallToolResult)
			}
			r.res, _ = nearLimit(r.res, near).(*mcp.CallToolResult)
		}
		return r.res, r.out, err
	}
}

// A returned holds the results of a typed handler, if the handler has returned.
type returned[Out any] struct {
	res         *mcp.CallToolResult
	out         Out
	err         error
	hasReturned bool
}

// stopped returns the results of Handler for an execution that was stopped. If it returns a nil error, the SDK
// checks the output against the tool's schema. A zero output may fail that check, and the client would get a
// JSON-RPC error. Therefore the error is nil only if the handler has returned an output, or if Out is an
// interface type, whose zero value needs no check.
func (r returned[Out]) stopped(stop error) (*mcp.CallToolResult, Out, error) {
	var none Out
	made := r.hasReturned && r.err == nil
	if !made && any(none) != nil {
		return nil, none, &failure{stop, toolcall.Text(stop, textOf(r.res))}
	}
	res := new(mcp.CallToolResult)
	if r.res != nil && r.res.InputRequests == nil {
		*res = *r.res
	}
	if made && res.Content == nil {
		// The SDK puts the output into an empty Content, but SetResult is about to add a text.
		if text, err := json.Marshal(r.out); err == nil && text[0] == '{' {
			res.Content = []mcp.Content{&mcp.TextContent{Text: string(text)}}
		}
	}
	SetResult(res, stop, "")
	if made {
		return res, r.out, nil
	}
	return res, none, nil
}

// textOf returns the texts of a result, one per line, or "" if res is nil.
func textOf(res *mcp.CallToolResult) string {
	if res == nil {
		return ""
	}
	var texts []string
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// A failure is the error of a stopped execution for which Handler can return no result. Its text is the text that the
// result would have.
type failure struct {
	stop error
	text string
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.stop }
