package mcpsdk

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SetResult makes res the result of a tool that failed with err: IsError is true, and the first
// content is a text with err's message and, if there is any, the partial output; see [toolcall.Text].
// The content that res already has stays, after that text, and so does its structured content; with
// such content and an empty partial, the text has no output. If an execution was stopped, its
// [toolcall.Outcome] is in _meta under [toolcall.OutcomeKey]. GetError of res returns err.
//
// A tool that was stopped may call SetResult itself, with context.Cause of its context or with the
// error of a command. The middleware then keeps the result, except that the Outcome is
// that of the call, and that the text gets the newest progress if it has none.
//
// If err is nil, SetResult does nothing. It does not write to the slices and maps of res.
func SetResult(res *mcp.CallToolResult, err error, partial string) {
	if err == nil {
		return
	}
	say := toolcall.Text(err, partial)
	if partial == "" && len(res.Content) > 0 {
		say = toolcall.Message(err) // the tool has put the output that it wants to show into res
	}
	text := &mcp.TextContent{Text: say}
	res.Content = append([]mcp.Content{text}, res.Content...)
	res.SetError(err)
	addOutcome(res, err)
}

func addOutcome(res *mcp.CallToolResult, err error) {
	outcome, ok := toolcall.OutcomeOf(err)
	if !ok {
		return
	}
	res.Meta = withOutcome(res.Meta, outcome)
}

func withOutcome(meta mcp.Meta, o toolcall.Outcome) mcp.Meta {
	return withField(meta, field{toolcall.OutcomeKey, o})
}

// answer returns the answer to a call whose execution ended with err, which is not nil. res is the partial result, or
// nil. The error is nil unless err is the tool's own *jsonrpc.Error.
func answer(req *mcp.CallToolRequest, res mcp.Result, err error) (mcp.Result, error) {
	r, _ := res.(*mcp.CallToolResult)
	if r != nil && r.IsError {
		if _, said := r.Meta[toolcall.OutcomeKey]; said {
			// The tool has called SetResult, perhaps with the error of a command. The result keeps its text, and
			// gets the outcome of this call and the newest progress.
			out := *r
			if _, stopped := err.(*timeout.Error); stopped {
				addOutcome(&out, err)
			}
			addLast(&out, err)
			return &out, nil
		}
	}
	if r != nil && echoes(r) && toolcall.Text(err, "") != toolcall.Message(err) {
		// The SDK has put the error of a typed handler into the result. toolcall.Text has more to say about
		// this error, such as the output of a command.
		out := newResult(req)
		out.Meta = r.Meta
		SetResult(out, err, "")
		return out, nil
	}
	stop, stopped := err.(*timeout.Error)
	if r != nil && r.GetError() != nil {
		own, _ := r.GetError().(*timeout.Error)
		if !stopped || stop == own || says(r, stop) {
			// The result has the text of the tool's own failure, or of Handler under the same limits.
			// Calls may share a result, so the additions go to a copy.
			out := *r
			addOutcome(&out, err)
			addLast(&out, err)
			return &out, nil
		}
	}
	var protocol *jsonrpc.Error
	var panicked *timeout.PanicError // the tool may have panicked with a *jsonrpc.Error
	if !stopped && !errors.As(err, &panicked) && errors.As(err, &protocol) {
		if err == error(protocol) {
			err = inOwnWords(protocol)
		}
		return nil, err
	}
	out := partialResult(req, r)
	SetResult(out, noAnswer(err), "")
	return out, nil
}

// addLast adds the newest progress of a stopped tool to the first text of res, if that begins with the text of err and
// has no progress yet (SPEC 7.7).
func addLast(res *mcp.CallToolResult, err error) {
	if _, stopped := toolcall.OutcomeOf(err); !stopped || !says(res, err) {
		return
	}
	own := err.Error()
	more, ok := strings.CutPrefix(toolcall.Message(err), own)
	text := *res.Content[0].(*mcp.TextContent)
	line, rest, _ := strings.Cut(text.Text[len(own):], "\n")
	if !ok || more == "" || strings.Contains(text.Text, "\nlast: ") {
		return
	}
	text.Text = own + line + more
	if rest != "" {
		text.Text += "\n" + rest
	}
	res.Content = slices.Clone(res.Content)
	res.Content[0] = &text
}

// partialResult returns a copy of r without questions, and without content that only says that a context has ended.
func partialResult(req *mcp.CallToolRequest, r *mcp.CallToolResult) *mcp.CallToolResult {
	switch {
	case r == nil, r.InputRequests != nil: // the tool can no longer use answers
		return newResult(req)
	case echoesCancel(r):
		out := newResult(req)
		out.Meta = r.Meta
		return out
	}
	out := *r
	return &out
}

// says reports whether the first content of r is a text that begins with the text of err.
func says(r *mcp.CallToolResult, err error) bool {
	if len(r.Content) == 0 {
		return false
	}
	text, ok := r.Content[0].(*mcp.TextContent)
	return ok && strings.HasPrefix(text.Text, err.Error())
}

// echoes reports whether the only content of r is the text of its error. The SDK makes such a result from the error of
// a typed handler.
func echoes(r *mcp.CallToolResult) bool {
	err := r.GetError()
	if err == nil || len(r.Content) != 1 {
		return false
	}
	text, ok := r.Content[0].(*mcp.TextContent)
	return ok && text.Text == err.Error()
}

// echoesCancel reports whether the only content of r is the text of the error of an ended context. The SDK makes such a
// result if a typed handler returns ctx.Err().
func echoesCancel(r *mcp.CallToolResult) bool {
	err := r.GetError()
	return echoes(r) && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
}

// noAnswer removes the texts that the SDK puts around a [progress.ErrNoAnswer], so that the client gets the text of
// SPEC 7.9. It returns any other error, and an error with other texts around it, unchanged.
func noAnswer(err error) error {
	for inner := errors.Unwrap(err); errors.Is(inner, progress.ErrNoAnswer); inner = errors.Unwrap(inner) {
		switch text, _, _ := strings.Cut(err.Error(), `"`); text {
		case "calling ", "multi-round-trip: fulfilling input request ", "fulfilling input request ":
			err = inner
		default:
			return err // the tool has wrapped the error
		}
	}
	return err
}

// newResult returns an empty result with the resultType that the protocol of req requires. The SDK sets that type in
// the result of a tool before middleware sees it, and exports no other way to set it than UnmarshalJSON.
func newResult(req *mcp.CallToolRequest) *mcp.CallToolResult {
	res := new(mcp.CallToolResult)
	if req.ProtocolVersion() >= sinceResultType {
		_ = json.Unmarshal([]byte(`{"resultType":"complete","content":[]}`), res)
	}
	return res
}

// wireError converts a *task.Error to an error of the SDK. It returns any other error unchanged.
func wireError(err error) error {
	if e, ok := err.(*task.Error); ok {
		return inOwnWords(&jsonrpc.Error{Code: int64(e.Code), Message: e.Message, Data: e.Data})
	}
	return err
}

// inOwnWords returns an error that the SDK sends with the message of e. If errors.Is finds the code -32601 in an error,
// the SDK sends "method not found" and the name of the method instead; inOwnWords wraps e so that it does not.
func inOwnWords(e *jsonrpc.Error) error {
	if e.Code != jsonrpc.CodeMethodNotFound {
		return e
	}
	return &refusal{e}
}

// A refusal wraps a *jsonrpc.Error. errors.As finds that error, from which the SDK takes the code, and errors.Is does
// not.
type refusal struct{ wire *jsonrpc.Error }

func (r *refusal) Error() string { return r.wire.Message }

func (r *refusal) As(target any) bool {
	e, ok := target.(**jsonrpc.Error)
	if ok {
		*e = r.wire
	}
	return ok
}
