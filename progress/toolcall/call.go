package toolcall

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/identity"
	"github.com/tooldeadline/tooldeadline/internal/observe"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// Do calls h under the limits that s has for the tool c.Tool. It returns when the execution has ended and no more
// notifications of the call will be sent. With h's context, heartbeats and [progress.Report] renew the idle limit and
// are sent to the client with c.Send.
//
// If the client has sent a [policy.Budget] in c.Meta, Do cuts the limits to [policy.Budget.Answer], so that the answer
// arrives before the client gives up. It does not cut them if they are only observed or c.Outlives is set. The Cause of
// a stop by a limit that was cut, and the log records of the call, name the budget. A budget that cannot be read is
// ignored, and only the first one for s is logged.
//
// If the execution is stopped, Do returns the value of h as a partial result together with the error, as [timeout.Do]
// does. A panic of h is returned as a [*timeout.PanicError], and so is a panic of a method of h's error, for example of
// Error if the error is a nil pointer. If the request sets an invalid limit, or s.Options has an option that Do
// refuses, Do returns a [*timeout.ConfigError] and does not call h. Do panics with a *timeout.ConfigError if h is nil.
//
// When [Drain.Shutdown] ends the server, the execution first begins to close, if there is time, and is then aborted
// with [ErrShutdown] as the cause. For a call that begins after the shutdown has begun, Do returns an error with that
// cause, and does not call h.
//
// Do is safe for concurrent use.
func Do[R any](ctx context.Context, s *Settings, c Call, h func(context.Context) (R, error)) (R, error) {
	if h == nil {
		panic(&timeout.ConfigError{Key: "handler", Value: "nil", Accepted: "one that is not nil"})
	}
	var zero R
	ctx, member := join(ctx)
	if c.Answered != nil && member != nil {
		defer func() {
			returned := false
			defer func() {
				if !returned { // Answered has panicked, and may not have arranged the call of leave
					member.leave()
				}
			}()
			c.Answered(member.leave)
			returned = true
		}()
	} else {
		defer member.leave()
	}
	if s == nil {
		s = new(Settings)
	}
	if err := s.check(); err != nil {
		return zero, err
	}
	requested, err := policy.Requested(s.requested(&c))
	if err != nil {
		if bad := (*timeout.ConfigError)(nil); errors.As(err, &bad) {
			bad.Tool = c.Tool
		}
		return zero, err
	}
	opts := append(s.Policy.For(c.Tool, requested), timeout.WithRecover())
	if s.Limits != nil {
		opts = append(opts, *s.Limits)
	}
	var limits timeout.Config
	for _, o := range opts {
		if given, ok := o.(timeout.Config); ok {
			limits = given // the last
		}
	}
	by := bound{interval: s.Interval}
	// A budget does not apply to limits that are only observed: the records show the effect of the operator's limits.
	if b := s.budget(c.Meta); b != (policy.Budget{}) && !c.Outlives && !s.Policy.Observes(c.Tool) {
		by = bounded(limits, b, c.Token != nil, s.Interval)
		limits = by.limits
		opts = append(opts, limits)
	}
	opts = append(opts, by.log(s.logger()))
	for _, o := range s.Options {
		opts = append(opts, o)
	}

	enclosing, observer := FromContext(ctx), observe.From(ctx, observe.Next)
	within := enclosing != nil && identity.Same(enclosing.Session, c.Session)
	notifies := c.Token != nil && c.Send != nil && !within // two senders for one token might send decreasing progress
	x := &execution{call: c, starting: callContext{Context: ctx, starting: true, monitor: heartbeat.FromContext(ctx)}}
	x.starting.call, x.tool.call = &x.call, &x.call
	if x.tool.observer = observer; within && observer == nil { // the client sees only the enclosing call
		x.tool.observer = observe.From(ctx, observe.Of)
	}
	// These calls are deferred outside the function of the execution, because an abandoned function may never return.
	defer x.sending.end()
	defer ended(observer)
	value, err := timeout.Do(&x.starting, func(ctx context.Context) (R, error) {
		if notifies {
			x.sending.start(func() (stop func()) { return progress.Start(ctx, x.call.Token, by.interval, x.call.Send) })
		}
		member.begins(ctx)
		if observer != nil {
			observer.Started(ctx)
		}
		x.tool.Context, x.tool.monitor = ctx, heartbeat.FromContext(ctx)
		value, err := h(&x.tool)
		if err != nil {
			meet(err)
			err = detailed(ctx, err)
		}
		x.returned.Store(true)
		return value, err
	}, opts...)
	err = by.explain(err)
	if c.NearLimit != nil && x.returned.Load() {
		if o := x.nearLimit(limits, err); o != nil {
			c.NearLimit(*o)
		}
	}
	return value, err
}

// An execution holds the state of one call of Do. It is one object to save allocations.
type execution struct {
	call           Call
	starting, tool callContext
	returned       atomic.Bool // h has returned, so tool is set; an abandoned h may set it after Do has returned
	sending        sending
}

// meet calls the Error, Is, As and Unwrap methods of the tool's error on the tool's goroutine, under its limits. If a
// method does not return, the limits stop the call, and if a method panics, that is a panic of the tool.
func meet(err error) {
	_ = err.Error()
	_ = errors.Is(err, errMet)
	var met *metError
	_ = errors.As(err, &met)
}

// A metError occurs in no error, so that errors.Is and errors.As visit the whole tree of the tool's error.
type metError struct{ error }

var errMet error = new(metError)

// A sending starts and stops the notifications of a call. start runs on the goroutine of the tool, which a hook may
// delay until Do has called end; start then does nothing.
type sending struct {
	mu    sync.Mutex
	over  bool
	stops func()
}

func (s *sending) start(begin func() (stop func())) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.stops = begin()
	}
}

func (s *sending) end() {
	s.mu.Lock()
	s.over = true
	stop := s.stops
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
}

func ended(o observe.Call) {
	if o != nil {
		o.Ended()
	}
}

// nearLimit returns the outcome of an execution whose function has returned in time, but with little left of its total.
// It returns nil if the execution was stopped, is only observed, or has more left. limits and err are the limits and
// the error of the execution.
func (x *execution) nearLimit(limits timeout.Config, err error) *Outcome {
	deadline, limited := x.tool.Deadline()
	if !limited || limits.Total > 0 && time.Until(deadline) >= max(limits.Total/10, limits.Reserve) {
		return nil // the common case, without the cost of a snapshot
	}
	s := timeout.FromContext(&x.tool).Snapshot()
	left := left(s.Limits, s.Elapsed)
	if left == nil || s.ObserveOnly {
		return nil
	}
	if _, stopped := OutcomeOf(err); stopped {
		return nil
	}
	return &Outcome{
		Kind: "returned", ExitCode: timeout.ExitCode(err),
		Total: millis(s.Limits.Total), Idle: millis(s.Limits.Idle), Left: left,
		Elapsed: millis(s.Elapsed), LongestGap: millis(s.LongestGap),
		Beats: s.Beats, Last: progress.UpdateOf(s.Detail).String(),
	}
}
