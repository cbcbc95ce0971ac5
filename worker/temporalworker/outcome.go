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

// The types of the application errors of stopped activities, for a RetryPolicy's
// NonRetryableErrorTypes.
const (
	TypeIdle    = "IdleTimeout"  // no heartbeat for the idle limit
	TypeTotal   = "TotalTimeout" // the total was reached
	TypeAborted = "Aborted"      // aborted with timeout.Execution.Abort, as from the live page
)

// types maps each timeout.Kind to its type.
var types = []string{timeout.ErrIdle: TypeIdle, timeout.ErrTotal: TypeTotal, timeout.ErrAborted: TypeAborted}

// An Outcome describes to a workflow how an activity was stopped. It is the first detail of the
// activity's error, as JSON. The second, if present, is the partial result.
type Outcome struct {
	toolcall.Outcome
	// Stack is the stack of a stuck activity, cut to 2 KiB.
	Stack string `json:"stack,omitempty"`

	details interface{ Details(...any) error }
}

// OutcomeOf returns the outcome in an activity's error, as workflow.ExecuteActivity or
// client.ExecuteActivity returns it, or in an error that wraps it. It returns false if the activity
// was not stopped by a limit, a cancellation or [timeout.Execution.Abort], or if it was cancelled and
// returned a CanceledError itself.
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

// Partial stores the result that the activity returned after it was stopped in the variable that ptr
// points to. It returns temporal.ErrNoData if the activity returned nothing or more than 1 MiB, or was
// abandoned, and another error if the result does not fit the variable.
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

// report returns the result and the error that the service gets for an execution.
func (s *settings) report(ctx context.Context, info *activity.Info, v any, err error) (any, error) {
	// Not errors.As: an error that wraps the end of an inner execution is the function's own. But an
	// end that it returns unchanged says more in this form than in the SDK's.
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
	// The newest detail is not in the message: like the details of errors, it may be encrypted on
	// its way to the service, and messages are not.
	return nil, temporal.NewApplicationErrorWithOptions(stopped.Error(), types[stopped.Kind], temporal.ApplicationErrorOptions{
		NonRetryable: slices.Contains(s.NonRetryable, stopped.Kind) || stopped.Kind == timeout.ErrTotal && isLast(info, stopped.Limits.Total),
		Cause:        stopped.Err,
		Details:      s.details(ctx, info, v, stopped),
	})
}

// reportEnd returns what the service gets for an activity that the service or the worker has ended: it
// was cancelled, paused, reset or given up, or the worker stops.
func (s *settings) reportEnd(ctx context.Context, info *activity.Info, v any, stopped *timeout.Error) (any, error) {
	cause := context.Cause(ctx)
	begun := stopped.Limits != timeout.Config{}
	var cancelled *temporal.CanceledError
	switch {
	case begun && !stopped.Abandoned && (stopped.Err == nil || stopped.Err == activity.ErrResultPending):
		// The activity has finished anyway, or something else will complete it. Another answer
		// would repeat it.
		return v, stopped.Err
	case !errors.As(cause, &cancelled):
		return nil, cause
	case errors.As(stopped.Err, &cancelled):
		return nil, stopped.Err // with details of its own, if any
	}
	return nil, temporal.NewCanceledErrorWithOptions(temporal.CanceledErrorOptions{
		Cause: stopped.Err, Details: s.details(ctx, info, v, stopped)})
}

// isLast reports whether another attempt, after this attempt has reached its total, would have no
// more time until the ScheduleToCloseTimeout than this one has reserved for its outcome. The
// service does not retry after that timeout either, and the workflow would get the outcome of an
// attempt of seconds instead of hours. For a local activity without a ScheduleToCloseTimeout, the SDK
// may report such a timeout.
func isLast(info *activity.Info, total time.Duration) bool {
	if info.ScheduleToCloseTimeout <= 0 || info.ScheduledTime.IsZero() || info.IsLocalActivity {
		return false
	}
	left := time.Until(info.ScheduledTime.Add(info.ScheduleToCloseTimeout))
	return left <= min(total/8, reserve) // a ninth, and what rounding adds
}

// maxPartial bounds the partial result. A failure of more than 2 MiB is replaced as a whole.
const maxPartial = 1 << 20

// maxStack bounds the stack in an outcome. Between attempts the service keeps no details of a
// failure of more than 4 KiB.
const maxStack = 2 << 10

// details returns the details of the error.
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

const maxLast = 256

// head returns at most the first n bytes of s, without a partial character.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// panicked is the value with which an activity's panic is repeated on the SDK's goroutine. The SDK
// reports the text of a panic and the stack of the goroutine that recovers it, which is not the
// activity's.
type panicked struct{ err *timeout.PanicError }

func (p panicked) Error() string {
	return panicText(p.err.Value) + "\n\n" + string(p.err.Stack)
}

func (p panicked) Unwrap() error { return p.err }

// panicText returns the text of a panic's value, bounded in size and time.
func panicText(v any) string {
	return strings.TrimPrefix((&timeout.PanicError{Value: v}).Error(), "panic: ")
}
