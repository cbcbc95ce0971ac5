package toolcall

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/exact"
	"github.com/tooldeadline/tooldeadline/internal/identity"
	"github.com/tooldeadline/tooldeadline/internal/observe"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A Settings holds what the calls of one server have in common. With the zero Settings each tool has
// the limits that the zero [policy.Policy] has for it. A nil *Settings is a zero one. It is safe for
// concurrent use as long as it is not changed.
type Settings struct {
	// Policy holds the limits by tool name, and the logger.
	Policy *policy.Policy
	// Limits are those of each tool, in place of the policy's; nil means those of the policy.
	Limits *timeout.Config
	// Logger receives the records of each call's execution, and what is ignored of a request. nil means that of the policy.
	Logger *slog.Logger
	// Options are passed to the execution of each call: hooks, a clock. Do refuses
	// [timeout.WithObserveOnly] with a [*timeout.ConfigError], because the server would declare limits that it
	// does not enforce: set ObserveOnly of the Policy.
	Options []timeout.Setting
	// Interval is the shortest time between two notifications of a call. 0 means 10 s; a negative
	// interval means no pause between them.
	Interval time.Duration
	// MetaTimeout lets a request set its total with timeoutMs in its _meta, and ArgumentTimeout with
	// timeoutMs among its arguments: a positive whole number of milliseconds, which is cut to the
	// tool's [policy.Tool.MaxTotal]. If both are set, _meta takes precedence. They are off by
	// default, because without a MaxTotal a request could lift every limit.
	MetaTimeout, ArgumentTimeout bool

	ignored uint32 // a budget was; atomic
}

// A Call is one tools/call as the server received it.
type Call struct {
	Tool string
	// Session identifies the connection or session that the call came in on; see [FromContext]. One
	// that cannot be compared is the same as no other. A server with one connection may leave it nil.
	Session any
	// RequestID is the id of the request, and SessionID that of its session, both as text, for logs
	// and traces. Both may be empty: Do does not use them.
	RequestID, SessionID string
	// Token is the progress token of the request, and Send sends a notification with it. If either is
	// nil, nothing is sent.
	Token any
	Send  progress.Notifier
	// Meta is the _meta of the request. Arguments holds its arguments, as a map[string]any or as JSON
	// in a json.RawMessage. Do looks only for timeoutMs in them and for a budget in Meta, so they may be left out.
	Meta      map[string]any
	Arguments any
	// Outlives says that the call may go on when its client has an answer, as a task does, or sees to that answer
	// itself: then the client's [policy.Budget] in Meta does not stop it.
	Outlives bool
	// Answered is called when Do returns, for a call that belongs to a [Drain]. It must arrange that leave is
	// called when the answer has been written to the client, or will never be written: the Drain waits for
	// that. If it is nil, the call counts as answered when Do returns. Do waits for it; a call whose Answered panics counts as
	// answered.
	Answered func(leave func())
	// NearLimit, if it is not nil, is called before Do returns if the tool has returned in time, but
	// so late that the [Outcome] has a Left. The Outcome is for the _meta of the tool's result. Do waits
	// for it.
	NearLimit func(Outcome)
	// Observer is the task that the call may become, which is notified of the execution of this call, and not of calls
	// within it: before the tool, on its goroutine, and at the end, before the last notification. Do waits for it. It may be
	// nil. For the client, a call within another call of the same session is part of that call, so if such a call has no
	// Observer, the Call that [FromContext] returns has the Observer of the enclosing call. To observe all calls of a
	// server, put hooks into the Options of [Settings].
	Observer observe.Call
}

// Do calls h under the limits that the policy has for the tool. It returns when the execution has
// ended and nothing more will be sent to the client. In h's context, package heartbeat and
// [progress.Report] renew the idle limit and reach the client.
//
// A client that says how long it waits, with a [policy.Budget] in c.Meta, gets its answer before that: the limits are cut
// to what [policy.Budget.Answer] says, unless they are only observed. The Cause of a stop by such a limit, and the records of
// the call, say so. A budget that cannot be read is ignored, and logged once.
//
// If the execution is stopped, Do returns what h returned as a partial result together with the error,
// as [timeout.Do] does. A panic of h is returned as a [*timeout.PanicError], and so is a panic of the
// Error method of h's error, such as that of a nil pointer. If the request asks for limits that are
// not valid, Do returns a [*timeout.ConfigError] and does not call h. It panics with one if h is nil.
//
// When [Drain.Shutdown] ends the server, the call is closing, if there is time, and is then aborted
// with [ErrShutdown] as the cause. A call that comes later is not started.
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
				if !returned { // it has panicked, and nobody else would leave
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
	// What is only observed is not stopped, and what is recorded of it is what the operator's limits would do.
	if b := s.budget(c.Meta); b != (policy.Budget{}) && !c.Outlives && !s.Policy.Observes(c.Tool) {
		by = bounded(limits, b, c.Token != nil, s.Interval)
		limits = by.limits
		opts = append(opts, limits)
	}
	opts = append(opts, by.log(s.logger()))
	for _, o := range s.Options {
		opts = append(opts, o)
	}

	enclosing, observer := FromContext(ctx), c.Observer
	within := enclosing != nil && identity.Same(enclosing.Session, c.Session)
	if within && observer == nil {
		c.Observer = enclosing.Observer
	}
	notifies := c.Token != nil && c.Send != nil && !within // two of one token could not agree on what increases
	x := &execution{call: c, starting: callContext{Context: ctx, starting: true, monitor: heartbeat.FromContext(ctx)}}
	x.starting.call, x.tool.call = &x.call, &x.call
	// Not in the function: one that has been abandoned would never get to its end.
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

// An execution is a call under its limits, in one object.
type execution struct {
	call           Call
	starting, tool callContext
	returned       atomic.Bool // the tool has, whose context is set then; one that has been abandoned may still come here
	sending        sending
}

// meet calls the methods of a tool's error that the answer to the call needs, while the limits of the tool still
// hold: a method that does not return is stopped as the tool would be, and one that panics is a panic of the tool.
func meet(err error) {
	_ = err.Error()
	_ = errors.Is(err, errMet)
	var met *metError
	_ = errors.As(err, &met)
}

// A metError is in no error's tree, so that errors.Is and errors.As ask all of the tree.
type metError struct{ error }

var errMet error = new(metError)

// A sending is the notifications of a call. They begin on the tool's goroutine, which an earlier hook may
// have kept until the call has ended.
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

const timeoutKey = "timeoutMs"

// requested returns the request's timeoutMs as it came, or nil if there is none or the Settings
// ignore it.
func (s *Settings) requested(c *Call) any {
	if s.MetaTimeout {
		if v := c.Meta[timeoutKey]; v != nil {
			return v
		}
	}
	if !s.ArgumentTimeout {
		return nil
	}
	switch args := c.Arguments.(type) {
	case map[string]any:
		return args[timeoutKey]
	case json.RawMessage:
		if !bytes.Contains(args, []byte(timeoutKey)) && !bytes.ContainsRune(args, '\\') {
			return nil
		}
		var value json.RawMessage
		times := 0
		err := exact.Members(args, func(m exact.Member) error { // in a struct, an argument TIMEOUTMS would be an error
			if m.Key == timeoutKey {
				value = m.Value
				times++
			}
			return nil
		})
		switch {
		case err != nil || times == 0:
		case times > 1: // the tool may read the other one
			return json.RawMessage("more than one value")
		default:
			return value
		}
	}
	return nil
}
