package temporalworker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Types of the application errors of stopped activities, for the NonRetryableErrorTypes of a RetryPolicy.
const (
	TypeIdle    = "IdleTimeout"  // stopped at the idle limit
	TypeTotal   = "TotalTimeout" // stopped at the total
	TypeAborted = "Aborted"      // aborted with timeout.Execution.Abort, which the page of running calls uses, too
)

// types holds the type of the application error for each timeout.Kind.
var types = []string{timeout.ErrIdle: TypeIdle, timeout.ErrTotal: TypeTotal, timeout.ErrAborted: TypeAborted}

// An Outcome describes to a workflow how an activity was stopped. It is the first detail of the
// activity's error, as JSON. The second, if present, is the partial result.
type Outcome struct {
	toolcall.Outcome
	// Stack is the stack of a stuck activity, cut to 2 KiB.
	Stack string `json:"stack,omitempty"`

	details interface{ Details(...any) error }
}

// OutcomeOf returns the outcome in the error of an activity, as workflow.ExecuteActivity or client.ExecuteActivity
// returns it, or in an error that wraps such an error; it does not look into an error that wraps several, as of
// errors.Join. The bool is false if the activity was not stopped by a limit, a cancellation or
// [timeout.Execution.Abort], or if it was cancelled and returned a CanceledError itself.
func OutcomeOf(err error) (Outcome, bool) {
	for ; err != nil; err = errors.Unwrap(err) {
		var o Outcome
		switch e := err.(type) {
		case *temporal.ApplicationError:
			if kind := slices.Index(types, e.Type()); kind > 0 {
				_ = e.Details(&o) // the service drops details that it finds too large
				o.Kind = timeout.Kind(kind).Error()
				o.details = e
				return o, true
			}
		case *temporal.CanceledError:
			if e.Details(&o) == nil && o.Kind == timeout.ErrAborted.Error() {
				o.details = e
				return o, true
			}
		}
	}
	return Outcome{}, false
}

// Partial stores the result that the activity returned after it was stopped in the variable that ptr points to. It
// returns temporal.ErrNoData if the activity returned no result, more than 1 MiB or what cannot be encoded, or was
// abandoned, and another error if the result cannot be decoded into the variable.
func (o Outcome) Partial(ptr any) error {
	if o.details == nil {
		return temporal.ErrNoData
	}
	var first, second converter.RawValue
	if err := o.details.Details(&first, &second); err != nil {
		return err
	}
	if second.Payload() == nil {
		return temporal.ErrNoData
	}
	return o.details.Details(&first, ptr)
}

// report returns the result and the error to report to the service for an execution that ended with v and err. It
// panics if the activity has panicked, as the SDK expects.
func (s *settings) report(ctx context.Context, info *activity.Info, v any, err error) (any, error) {
	// A type assertion, because an error of the function may wrap the error of an inner execution. An unwrapped error
	// of an inner execution is reported in the same form as a stop of the activity.
	if p, ok := err.(*timeout.PanicError); ok {
		panic(panicked{p})
	}
	stopped, ok := err.(*timeout.Error)
	if !ok {
		return v, err
	}
	if stopped.Kind == timeout.ErrAborted && ctx.Err() != nil {
		return s.reportEnd(ctx, info, v, stopped)
	}
	if len(stopped.Stack) > maxStack {
		s.warn(ctx, info, "the stack of a stopped activity", "stack", string(stopped.Stack))
	}
	// The newest heartbeat detail is not in the message, because a codec may encrypt details, but not messages.
	return nil, temporal.NewApplicationErrorWithOptions(stopped.Error(), types[stopped.Kind], temporal.ApplicationErrorOptions{
		NonRetryable: stopped.Kind == timeout.ErrTotal && isLast(info, stopped.Limits.Total),
		Cause:        stopped.Err,
		Details:      s.details(ctx, info, v, stopped),
	})
}

// reportEnd returns the result and the error to report for an activity whose context the SDK has cancelled, because the
// activity was cancelled, paused, reset or given up, or the worker stops.
func (s *settings) reportEnd(ctx context.Context, info *activity.Info, v any, stopped *timeout.Error) (any, error) {
	cause := context.Cause(ctx)
	begun := stopped.Limits != timeout.Config{}
	var cancelled *temporal.CanceledError
	switch {
	case begun && !stopped.Abandoned && (stopped.Err == nil || stopped.Err == activity.ErrResultPending):
		// The activity has succeeded nevertheless, or will be completed asynchronously. An error would make the service
		// repeat it.
		return v, stopped.Err
	case !errors.As(cause, &cancelled):
		return nil, cause
	case errors.As(stopped.Err, &cancelled):
		return nil, stopped.Err // the activity's own CanceledError, perhaps with details
	}
	return nil, temporal.NewCanceledErrorWithOptions(temporal.CanceledErrorOptions{
		Cause: stopped.Err, Details: s.details(ctx, info, v, stopped)})
}

// isLast reports whether so little time is left until the ScheduleToCloseTimeout, after this attempt has reached the
// given total, that another attempt could not do any work. The time left is then only the reserve of this attempt.
// Without this check, the service would start a further attempt of a few seconds, and the workflow would get its
// outcome. isLast returns false without a ScheduleToCloseTimeout, and for a local activity, for which the SDK may
// report one that is not set.
func isLast(info *activity.Info, total time.Duration) bool {
	if info.ScheduleToCloseTimeout <= 0 || info.ScheduledTime.IsZero() || info.IsLocalActivity {
		return false
	}
	left := time.Until(info.ScheduledTime.Add(info.ScheduleToCloseTimeout))
	return left <= min(total/8, reserve) // the reserve is a ninth of the total; an eighth allows for rounding
}

// maxPartial is the largest size of a partial result, in bytes. The service replaces a failure of more than 2 MiB.
const maxPartial = 1 << 20

// maxStack is the largest size of the stack in an Outcome, in bytes. Between attempts the service drops the details of
// a failure of more than 4 KiB.
const maxStack = 2 << 10

// details returns the details of the error of a stopped activity: the Outcome and the result v, unless v is nil, too
// large, or cannot be converted.
func (s *settings) details(ctx context.Context, info *activity.Info, v any, stopped *timeout.Error) []any {
	o := Outcome{Stack: head(string(stopped.Stack), maxStack)}
	o.Outcome, _ = toolcall.OutcomeOf(stopped)
	o.Last = head(o.Last, maxLast)
	all := []any{o}
	if v == nil {
		return all
	}
	p, err := s.DataConverter.ToPayload(v)
	if size := len(p.GetData()); err != nil || size > maxPartial {
		s.warn(ctx, info, "the partial result of a stopped activity is dropped", "bytes", size, "error", err)
		return all
	}
	return append(all, v)
}

// maxLast is the largest size of Last in an Outcome, in bytes.
const maxLast = 256

// head returns s or, if s is longer than n bytes, the first n bytes of s without invalid UTF-8, and so without a part
// of a character.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// A panicked is the value with which report panics on the goroutine of the SDK after an activity has panicked. Its text
// contains the stack of the activity, because the SDK reports only the stack of its own goroutine.
type panicked struct{ err *timeout.PanicError }

func (p panicked) Error() string {
	return panicText(p.err.Value) + "\n\n" + string(p.err.Stack)
}

func (p panicked) Unwrap() error { return p.err }

// panicText returns the text of the value of a panic. Its size and the time for the value's methods are bounded.
func panicText(v any) string {
	return strings.TrimPrefix((&timeout.PanicError{Value: v}).Error(), "panic: ")
}
