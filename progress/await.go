package progress

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// How long [Await] waits by default. A client whose request has no progress token hears nothing of
// the wait, and many clients give up after 60 s. A client that follows the progress waits for
// longer.
const (
	defaultLimit         = 30 * time.Second
	defaultProgressLimit = 120 * time.Second
)

const (
	// awaitGrace is how long an ask that ignores its context is waited for.
	awaitGrace = time.Second
	// hostMargin is what is left of a host's limit for the answer: awaitGrace, and a second to send it.
	hostMargin = awaitGrace + time.Second
	// marginPart is the part of what is left of a total or a deadline that a wait leaves for the answer,
	// up to hostMargin.
	marginPart = 6
)

// ErrNoAnswer is matched, with errors.Is, by the error of [Await] and [AwaitReply] when no answer
// has come in time. Its text is "Command timed out waiting for approval. Consider approving faster
// or configuring a longer timeout."
var ErrNoAnswer error = noAnswerText{}

type noAnswerText struct{}

func (noAnswerText) Error() string {
	return "Command timed out waiting for approval. Consider approving faster or configuring a longer timeout."
}

// A noAnswer is the error that Await returns when nobody has answered. The timeout under it has the
// exit code.
type noAnswer struct {
	text string
	err  error
}

func (e *noAnswer) Error() string { return e.text }

func (e *noAnswer) Unwrap() []error { return []error{ErrNoAnswer, e.err} }

// A Wait says how [Await] and [AwaitReply] wait. The zero Wait has the defaults. For each duration, a negative value
// means none.
type Wait struct {
	// Limit is how long to wait if the client's request has no progress token, because such a client hears
	// nothing of the wait; 0 means 30 s. ProgressLimit is the limit for a request with a token,
	// and for a call that its client follows as a task; 0 means 120 s. Without a limit, only
	// the totals of the enclosing executions and the deadline of the context bound the wait.
	Limit, ProgressLimit time.Duration
	// HostLimit is how long the client waits for the answer to a call without a progress token; 0 means that
	// this is not known. For such a call, the wait may take as long as is left of it, less 2 s for the answer,
	// instead of 30 s; Limit still bounds it. If nothing is left, the wait ends at once.
	HostLimit time.Duration
	// KeepAlive is the time between two keep-alive updates, 1 ms or more; 0 means [heartbeat.Interval], and
	// none that nothing is sent after the first message. Between 10 s and 15 s is usual: it has to be well below the 60 s
	// for which clients wait for the next update. The client gets them no faster than the interval of [Start]
	// allows.
	KeepAlive time.Duration
	// Words makes the text of the messages, in another language for example: what is awaited, such as "approval of
	// rm -r build", cut to 160 bytes; how long the wait has taken; and how long it may still take, negative if it has
	// no limit. nil means "Waiting for approval of rm -r build (20s so far, 10s left)". It may be called concurrently.
	// If it panics or does not return within 1 s, the text is that for nil from then on. If it returns the text that
	// the client already has, the elapsed time is added, because some clients drop a message that is equal to the one
	// before.
	Words func(what string, elapsed, left time.Duration) string
}

// within returns how long to wait if the limit is d, 0 for none: no longer than the executions of ctx and its
// deadline allow, less a margin, so that the tool answers with the words for the wait and is not stopped.
// Where an execution has a reserve, the wait ends when that is reached: then the tool has to answer.
// grace is how long an ask that ignores its context may be waited for.
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

// limit returns how long to wait; 0 means no limit.
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

// Await calls ask, which waits for a person to approve something. The parameter what names it, as in
// "rm -r build". Meanwhile Await sends keep-alive updates to the client, one at once and one every 10
// s or, with a short idle limit, more often ([Wait.KeepAlive]), so that a client that looks at progress
// waits too. The text of each update ([Wait.Words]) says what is awaited, how long the wait has taken, and
// how long it may still take; no two in a row are equal. The idle check is held during the wait; the total
// of the enclosing execution keeps running.
//
// If nobody answers within the limit, which is 30 s, or 120 s if the client's request has a progress
// token ([Wait.Limit]), Await cancels ask's context and returns an error whose text is that of
// [ErrNoAnswer]. For that error, errors.Is finds ErrNoAnswer, errors.As finds a [*timeout.Error], and
// [timeout.ExitCode] returns 124. Return it from the tool unchanged. An ask that ignores its context
// is abandoned 1 s later.
//
// The wait ends before the tool would be stopped: a sixth of what is left of its totals and of ctx's
// deadline, at most 2 s, is left for the answer, and all of a Reserve of [timeout.Config]. If the
// enclosing execution is stopped first, Await returns the *timeout.Error of the wait, which is stopped
// along with it. Otherwise it returns what ask returned. A panic of ask passes through; a nil ask panics
// with a [*timeout.ConfigError].
//
// Outside an execution Await waits in the same way but sends no updates.
func Await[T any](ctx context.Context, what string, wait Wait, ask func(context.Context) (T, error)) (T, error) {
	return awaitAny(ctx, "approval of "+what, ErrNoAnswer.Error(), wait, ask)
}

// AwaitReply is [Await] for a reply of the client that is not an approval: an answer of its model
// (sampling), a sign-in, its list of roots. The parameter what names the reply, as in "the list of
// roots": the messages begin with "Waiting for the list of roots", and if no reply comes in time, the
// text of the error is "Command timed out waiting for the list of roots. Consider configuring a
// longer timeout." In that error too, errors.Is finds [ErrNoAnswer].
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
		w.KeepAlive = heartbeat.Interval(ctx) // the client's silence may be the idle limit
	}
	limit, grace := within(ctx, w.limit(ctx))
	defer heartbeat.Hold(ctx)()
	wait, takeBack := w.announce(ctx, what, expired, limit)
	defer takeBack()
	// The start of the execution is the beat that sends the first message. With another one, the
	// client would get a second message when its interval ends, whatever that of the keep-alives is.
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

// worked returns the newest detail of the work of an execution, or of an enclosing one, that waits.
func worked(ctx context.Context) any {
	for c := pulse.Of(ctx); c != nil; c = c.Enclosing() {
		if detail := c.Lasting(); detail != nil {
			return detail
		}
	}
	return nil
}

// answered distinguishes an error of ask, which may itself be a *timeout.Error, from an error of
// the wait.
type answered struct{ error }

// announce makes the wait the message that beats repeat, and beats at the interval, until takeBack is
// called. It leaves the tool's figures as they are, since waiting is no progress. The end of the wait
// sends no notification: after an expiry the tool's answer is about to follow.
//
// It returns the detail, or nil outside an execution.
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
	// The error of an execution that is stopped now is put into words only later.
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
