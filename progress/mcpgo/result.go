package mcpgo

import (
	"errors"
	"maps"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SetResult makes res the result of a tool that failed with err: IsError is true, and the first
// content is a text with err's message and, if there is any, the partial output; see [toolcall.Text].
// The content that res already has stays, after that text, and so does its structured content; with
// such content and an empty partial, the text has no output. If an execution was stopped, its
// [toolcall.Outcome] is in _meta under [toolcall.OutcomeKey].
//
// A tool that was stopped may call SetResult itself, with context.Cause of its context or with the
// error of a command. The middleware then leaves the result unchanged, except that the Outcome is
// that of the call.
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
	text := mcp.NewTextContent(say)
	res.Content = append([]mcp.Content{text}, res.Content...)
	res.IsError = true
	outcome, ok := toolcall.OutcomeOf(err)
	if !ok {
		return
	}
	res.Meta = withOutcome(res.Meta, outcome)
}

func withOutcome(of *mcp.Meta, o toolcall.Outcome) *mcp.Meta {
	return withField(of, toolcall.OutcomeKey, o)
}

// withField returns a copy of a _meta, which may be nil, with another field.
func withField(of *mcp.Meta, key string, value any) *mcp.Meta {
	meta := new(mcp.Meta)
	if of != nil {
		*meta = *of
		meta.AdditionalFields = maps.Clone(meta.AdditionalFields)
	}
	meta.SetMetaField(key, value)
	return meta
}

// nearLimit returns a copy of res with the outcome near of a tool that returned with little of its total left
// (SPEC 7.11). It returns res itself if near is nil, or if res has an outcome or asks for input.
func nearLimit(res *mcp.CallToolResult, near *toolcall.Outcome) *mcp.CallToolResult {
	if near == nil || res == nil || res.NeedsInput() {
		return res
	}
	if res.Meta != nil {
		if _, said := res.Meta.AdditionalFields[toolcall.OutcomeKey]; said {
			return res
		}
	}
	out := *res // a result may be shared by calls
	out.Meta = withOutcome(out.Meta, *near)
	return &out
}

// foreign reports whether err is an error of the supervision and not the tool's own: the tool was stopped, panicked,
// called runtime.Goexit, or was not called because its limits are not valid. A tool may also return such an error itself,
// such as that of progress.Await.
func foreign(err error) bool {
	_, stopped := toolcall.OutcomeOf(err)
	var panicked *timeout.PanicError
	var bad *timeout.ConfigError
	return stopped || errors.As(err, &panicked) || errors.As(err, &bad) || errors.Is(err, timeout.ErrGoexit)
}

// answer returns the answer to a call that ended with err; res is the partial result, or nil. It returns a tool's own
// error unchanged, because mcp-go recognizes some errors.
func answer(res *mcp.CallToolResult, err error) (*mcp.CallToolResult, error) {
	if err == nil || !foreign(err) {
		return res, err
	}
	if res != nil && res.IsError && res.Meta != nil {
		if _, said := res.Meta.AdditionalFields[toolcall.OutcomeKey]; said {
			// The tool has called SetResult, perhaps with the error of a command; only the outcome is replaced.
			out := *res
			if outcome, ok := toolcall.OutcomeOf(err); ok {
				out.Meta = withOutcome(out.Meta, outcome)
			}
			return &out, nil
		}
	}
	out := new(mcp.CallToolResult)
	if res != nil && !res.NeedsInput() { // the tool can no longer use an answer
		*out = *res // a result may be shared by calls
	}
	SetResult(out, err, "")
	return out, nil
}
