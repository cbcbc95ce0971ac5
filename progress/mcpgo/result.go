package mcpgo

import (
	"errors"
	"maps"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/internal/toolcall"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SetResult makes res the result of a tool that failed with err (SPEC 7.7): IsError is
// true, and the first content is a text with err's message and, where there is any, the
// partial output. What res has as its content and structured content stays, after the text.
// If an execution was stopped, its [progress.Outcome] stands in _meta under
// [progress.OutcomeKey].
//
// A tool that was stopped may call it itself, with [context.Cause] of its context; the
// middleware then leaves the result as it is.
//
// Where err is nil it does nothing. Slices and maps that res has are not written to.
func SetResult(res *mcp.CallToolResult, err error, partial string) {
	if err == nil {
		return
	}
	text := mcp.NewTextContent(toolcall.Text(err, partial))
	res.Content = append([]mcp.Content{text}, res.Content...)
	res.IsError = true
	outcome, ok := progress.OutcomeOf(err)
	if !ok {
		return
	}
	meta := new(mcp.Meta)
	if res.Meta != nil {
		*meta = *res.Meta
		meta.AdditionalFields = maps.Clone(meta.AdditionalFields)
	}
	meta.SetMetaField(progress.OutcomeKey, outcome)
	res.Meta = meta
}

// answer gives what the client gets of a call that ended with err; res is what there is of
// a result. The tool's own error is the tool's: mcp-go gives some of them a meaning.
func answer(res *mcp.CallToolResult, err error) (*mcp.CallToolResult, error) {
	if err == nil || !ours(err) {
		return res, err
	}
	if res != nil && res.IsError && res.Meta != nil {
		if _, said := res.Meta.AdditionalFields[progress.OutcomeKey]; said {
			return res, nil // by the tool, with SetResult
		}
	}
	out := new(mcp.CallToolResult)
	if res != nil && !res.NeedsInput() { // a question would come too late
		*out = *res // a result may be shared by calls
	}
	SetResult(out, err, "")
	return out, nil
}

// ours reports whether err says that a tool was stopped, did not end as a function should,
// or was not called.
func ours(err error) bool {
	var stopped *timeout.Error
	var panicked *timeout.PanicError
	var bad *timeout.ConfigError
	return errors.As(err, &stopped) || errors.As(err, &panicked) || errors.As(err, &bad) || errors.Is(err, timeout.ErrGoexit)
}
