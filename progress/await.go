package progress

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// The default limits of Await and AwaitReply: defaultLimit for a request without a progress token, whose client gets no
// updates and often gives up after 60 s, and defaultProgressLimit for a request with a token.
const (
	defaultLimit         = 30 * time.Second
	defaultProgressLimit = 120 * time.Second
)

const (
	// awaitGrace is how long Await waits for an ask that ignores the end of its context.
	awaitGrace = time.Second
	// hostMargin is the time before a host's limit at which a wait ends: awaitGrace, and a second to send the answer.
	hostMargin = awaitGrace + time.Second
	// A wait ends before a total or a deadline, by 1/marginPart of the remaining time, but at most by hostMargin.
	marginPart = 6
)

// ErrNoAnswer is found by errors.Is in the error that [Await] and [AwaitReply] return when no answer comes
// within the limit of the wait. The text of ErrNoAnswer is "Command timed out waiting for approval. Consider
// approving faster or configuring a longer timeout."
var ErrNoAnswer error = noAnswerText{}

type noAnswerText struct{}

func (noAnswerText) Error() string {
	return "Command timed out waiting for approval. Consider approving faster or configuring a longer timeout."
}

// A noAnswer is the error of Await when nobody has answered. err is the *timeout.Error of the wait, from which
// timeout.ExitCode takes the exit code.
type noAnswer struct {
	text string
	err  error
}

func (e *noAnswer) Error() string { return e.text }

func (e *noAnswer) Unwrap() []error { return []error{ErrNoAnswer, e.err} }

// A Wait configures the waits of [Await] and [AwaitReply]. The zero Wait means the defaults. A negative Limit or
// ProgressLimit means no limit, except that HostLimit still applies.
type Wait struct {
	// Limit is how long to wait if the client's request has no progress token, so that the client gets no updates; 0
	// means 30 s. ProgressLimit is the limit for a request with a token, and for a call that its client follows as a
	// task; 0 means 120 s. Without a limit, only the totals and reserves of the enclosing executions and the
	// deadline of the context bound the wait.
	Limit, ProgressLimit time.Duration
	// HostLimit is how long the client waits for the answer to a call without a progress token; 0 or less means that
	// this is not known. A positive HostLimit takes the place of the default of 30 s: the wait of such a call ends
	// at the latest 2 s before HostLimit has passed since the beginning of the call or, outside an execution, of the
	// wait. If that time has already passed, the wait ends at once. A positive Limit may end the wait earlier.
	HostLimit time.Duration
	// KeepAlive is the time between two keep-alive updates, at least 1 ms; 0 means [heartbeat.Interval], and a
	// negative value means that only the first update is sent. Choose 10 s to 15 s: many clients wait up to 60 s for
	// the next update. Updates reach the client no faster than the interval of [Start] allows.
	KeepAlive time.Duration
	// Words returns the text of a message, for example in another language. what names the awaited answer, such as
	// "approval of rm -r build", cut to 160 bytes; elapsed is how long the wait has taken so far; left is how long
	// it may still take, negative if it has no limit. nil means a text such as "Waiting for approval of rm -r build
	// (20s so far, 10s left)". Words may be called concurrently. If it panics or does not return within 1 s, the
	// wait uses the text for nil from then on. If it returns the previous text again, the elapsed time is added,
	// because some clients drop a message that equals the previous one.
	Words func(what string, elapsed, left time.Duration) string
}

// within shortens the limit d of a wait, where 0 means no limit, so that the wait ends before the executions or the
// deadline of ctx stop the tool, by a margin, and before a reserve of an execution begins. The tool then has time to
// answer with the text of the wait. A limit of 0 means that nothing bounds the wait. grace is how long to wait for an
// ask that ignores its context.
func within(ctx context.Context, d time.Duration) (limit, grace time.Duration) {
	limit, grace = d, awaitGrace
	shorten := func(most time.Duration) {
		if most > time.Millisecond {
			most = most.Truncate(time.Millisecond)
		}
		if limit == 0 || most < limit {
			limit = max(most, 1)
		}
	}
	if left, ok := timeout.Remaining(ctx); ok && left > 0 {
		margin := min(left/marginPart, hostMargin)
		grace = min(grace, margin/2)
		shorten(left - margin)
	}
	for c := pulse.Of(ctx); c != nil; c = c.Enclosing() {
		if e, ok := c.Engine().(interface{ UntilClosing() (time.Duration, bool) }); ok {
			if left, ok := e.UntilClosing(); ok {
				shorten(left)
			}
		}
	}
	return limit, max(grace, 1)
}

// limit returns the limit of a wait by the fields of w and the progress token in ctx; 0 means no limit.
func (w *Wait) limit(ctx context.Context) time.Duration {
	heard := pulse.Heard(ctx)
	limit, byDefault := w.Limit, defaultLimit
	if heard {
		limit, byDefault = w.ProgressLimit, defaultProgressLimit
	}
	if w.HostLimit > 0 && !heard {
		left := w.HostLimit - hostMargin
		for c := pulse.Of(ctx); c != nil; c = c.Enclosing() {
			if c.Enclosing() == nil { // the call is the outermost execution
				left -= c.Now()
			}
		}
		byDefault = max(left, 1)
		if limit != 0 {
			limit = min(max(limit, 0), byDefault)
		}
	}
	switch {
	case limit == 0:
		return byDefault
	case limit < 0:
		return 0
	}
	return limit
}

// Await calls ask, which waits for a person to approve the action that what names, such as "rm -r build".
// Meanwhile Await sends keep-alive updates to the client, one at once and one every 10 s or, with a short
// idle limit, more often ([Wait.KeepAlive]), so that a client that follows the progress keeps waiting. The
// text of each update ([Wait.Words]) says what is awaited, how long the wait has taken, and how long it may
// still take; no two consecutive texts are equal. The idle check is held during the wait; the total of the
// enclosing execution keeps running.
//
// If nobody answers within the limit, which is 30 s, or 120 s if the client's request has a progress token
// ([Wait.Limit]), Await cancels ask's context and returns an error whose text is that of [ErrNoAnswer]. For that
// error, errors.Is finds ErrNoAnswer, errors.As finds a [*timeout.Error], and [timeout.ExitCode] returns 124. Return
// it from the tool unchanged. An ask that ignores its context is abandoned at most 1 s later.
//
// The wait ends early enough for the tool to answer before the tool is stopped: a sixth of the time that remains of
// the tool's totals and of ctx's deadline, but at most 2 s, is left, and all of a Reserve of [timeout.Config]. If
// ctx ends first, for example because the enclosing execution is stopped, Await returns the *timeout.Error of the
// wait. Otherwise Await returns the results of ask. A panic of ask passes through. If ask is nil, Await panics with
// a [*timeout.ConfigError].
//
// Outside an execution Await waits in the same way but sends no updates.
func Await[T any](ctx context.Context, what string, wait Wait, ask func(context.Context) (T, error)) (T, error) {
	return awaitAny(ctx, "approval of "+what, ErrNoAnswer.Error(), wait, ask)
}

// AwaitReply waits as [Await] does, but for a reply of the client that is not an approval: an answer of its model
// (sampling), a sign-in, its list of roots. what names the reply, for example "the list of roots": without
// [Wait.Words], the messages then begin with "Waiting for the list of roots". If no reply comes in time, the text of
// the error is "Command timed out waiting for the list of roots. Consider configuring a longer timeout." In that
// error too, errors.Is finds [ErrNoAnswer].
//
// If a tool waits without AwaitReply, its idle limit stops it when the client does not reply.
func AwaitReply[T any](ctx context.Context, what string, wait Wait, ask func(context.Context) (T, error)) (T, error) {
	return awaitAny(ctx, what, "Command timed out waiting for "+what+". Consider configuring a longer timeout.", wait, ask)
}

func awaitAny[T any](ctx context.Context, what, expired string, w Wait, ask func(context.Context) (T, error)) (T, error) {
	if ask == nil {
		panic(&timeout.ConfigError{Key: "ask", Value: "nil", Accepted: "one that is not nil"})
	}
	if w.KeepAlive == 0 {
		w.KeepAlive = heartbeat.Interval(ctx) // shorter if an idle limit is short
	}
	limit, grace := within(ctx, w.limit(ctx))
	defer heartbeat.Hold(ctx)()
	wait, takeBack := w.announce(ctx, what, expired, limit)
	defer takeBack()
	// The start of the execution is the beat that sends the first message. A second beat here would send
	// the client another message at the end of the interval of Start.
	v, err := timeout.Do(ctx, func(ctx context.Context) (T, error) {
		v, err := ask(ctx)
		if err != nil {
			err = &answered{err}
		}
		return v, err
	}, timeout.Config{Total: limit, Grace: grace})
	switch e := err.(type) {
	case *answered:
		return v, e.error
	case *timeout.Error:
		if late, ok := e.Err.(*answered); ok {
			e.Err = late.error
		}
		// Only the limit of the wait becomes a noAnswer. A smaller total was the rest of an enclosing total, which is
		// e.Limit. A stop before the limit is due to a deadline that the context did not show.
		if e.Kind == timeout.ErrTotal && e.Limits.Total == limit && limit > 0 && e.Elapsed >= limit {
			e.Detail = worked(ctx) // the detail of the tool's work, and not of the wait
			return v, &noAnswer{expired, e}
		}
		if e.Detail == nil && wait != nil {
			e.Detail = wait // the update that describes the wait
		}
	}
	return v, err
}

// worked returns the newest detail that describes work and not a wait, from the execution of ctx or else from the
// nearest enclosing one that has such a detail. It returns nil if none has.
func worked(ctx context.Context) any {
	for c := pulse.Of(ctx); c != nil; c = c.Enclosing() {
		if detail := c.Lasting(); detail != nil {
			return detail
		}
	}
	return nil
}

// answered wraps an error of ask, to distinguish it from an error of the wait. Both may be a *timeout.Error.
type answered struct{ error }

// announce sets a detail that describes the wait as the detail of later beats, and beats at the KeepAlive interval,
// until takeBack is called. The detail keeps the newest Progress and Total, since waiting is no progress. takeBack
// sends no notification, because after an expired wait the tool is about to answer.
//
// The first result is the detail, or nil outside an execution.
func (w *Wait) announce(ctx context.Context, what, expired string, limit time.Duration) (wait any, takeBack func()) {
	c := pulse.Of(ctx)
	if c == nil {
		return nil, func() {}
	}
	now := &waiting{what: shorten(what), expired: expired, limit: limit, words: w.Words, cell: c, start: c.Now()}
	u := Update{waiting: now, Message: now.text(0)}
	if before, ok := c.Detail().(*Update); ok && before != nil {
		u.Progress, u.Total = before.Progress, before.Total
	}
	detail := detailOf(u)
	end := c.Interlude(detail)
	// If ctx ends, the times in the text of the wait must stay as they are until the error is formatted.
	unhook := context.AfterFunc(ctx, now.freeze)
	if w.KeepAlive > 0 {
		now.beat(max(w.KeepAlive, time.Millisecond))
	}
	return *detail, func() {
		unhook()
		now.freeze()
		end()
	}
}
