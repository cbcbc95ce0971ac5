// Package toolcall is what the adapters of the MCP SDKs do alike with a tool call that
// their server has received.
package toolcall

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A Call is one tools/call.
type Call struct {
	Policy    *timeout.Policy
	Tool      string
	Requested any // the request's timeoutMs, see timeout.RequestTimeout; nil where there is none

	Token    any               // the request's progress token; nil where there is none
	Send     progress.Notifier // not used without a token
	Interval time.Duration     // between notifications; 0 is the default

	Options []timeout.Option // on top of what the policy gives
}

// Do calls h under the limits that the policy has for the tool. It returns when the
// execution has ended and nothing more will be sent to the client. What h returned comes
// with the error of a stop as a partial result, as timeout.Do gives it. A panic is a
// *timeout.PanicError, and so is an error whose Error panics, as that of a nil pointer may; a
// request for limits that make no sense is a *timeout.ConfigError, for which h is not called.
func Do[R any](ctx context.Context, c Call, h func(context.Context) (R, error)) (R, error) {
	var zero R
	requested, err := timeout.RequestTimeout(c.Requested)
	if err != nil {
		return zero, err
	}
	limits, err := c.Policy.Resolve(c.Tool, requested)
	if err != nil {
		return zero, err
	}
	opts := append(make([]timeout.Option, 0, len(c.Options)+5), limits, timeout.WithName(c.Tool), timeout.WithRecover())
	if c.Policy != nil {
		opts = append(opts, timeout.WithLogger(c.Policy.Logger))
	}
	opts = append(opts, c.Options...)
	speaks := func(ctx context.Context) (R, error) {
		value, err := h(ctx)
		if err != nil {
			_ = err.Error() // here it is recovered
		}
		return value, err
	}
	if c.Token == nil {
		return timeout.Do(ctx, speaks, opts...)
	}
	stop := func() {}
	opts = append(opts, timeout.WithHooks(timeout.Hooks{Started: func(ctx context.Context, _ timeout.Snapshot) {
		stop = progress.Start(ctx, c.Token, c.Send, progress.WithInterval(c.Interval))
	}}))
	// Not in h: one that has been abandoned would never get to its end.
	defer func() { stop() }()
	return timeout.Do(ctx, speaks, opts...)
}

// Text is what a result says about err to the model: its message, and what there is of
// the output (SPEC 7.7).
func Text(err error, partial string) string {
	if partial == "" {
		return err.Error()
	}
	return err.Error() + "\n\nPartial output:\n" + partial
}
