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
	DefaultAwaitLimit         = 30 * time.Second
	DefaultAwaitProgressLimit = 120 * time.Second
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

// An AwaitOption configures [Await] and [AwaitReply]. If the same option is given twice, the last one
// counts.
type AwaitOption interface{ applyAwait(*await) }

type await struct {
	silent, heard time.Duration // 0 means the default, a negative one none
	host          time.Duration
	every         time.Duration
	words         func(Waiting) string
}

type awaitFunc func(*await)

func (f awaitFunc) applyAwait(a *await) { f(a) }

// WithLimits sets how long [Await] waits: for withProgress if the client's request has a progress
// token, and for limit if it has none, because such a client hears nothing of the wait. A call that
// its client follows as a task counts as one with a token. A negative value means no limit: only the
// totals of the enclosing executions and the deadline of the context bound the wait. 0 means
// [DefaultAwaitLimit] for limit, and [DefaultAwaitProgressLimit] for withProgress.
func WithLimits(limit, withProgress time.Duration) AwaitOption {
	return awaitFunc(func(a *await) { a.silent, a.heard = limit, withProgress })
}

// WithHostLimit tells [Await] that the client waits for d for the answer to a call without a
// progress token. For such a call, the wait may take as long as is left of d, less 2 s for the
// answer, instead of [DefaultAwaitLimit]; a limit of [WithLimits] still bounds it. If nothing is
// left, the wait ends at once. 0 or less means that it is not known how long the client waits.
func WithHostLimit(d time.Duration) AwaitOption {
	return awaitFunc(func(a *await) { a.host = d })
}

// WithKeepAlive sets the time between two keep-alive updates of [Await]. Between 10 s and 15 s is
// usual: it has to be well below the 60 s for which clients wait for the next update. The client gets
// them no faster than the interval of [Start] allows. 0 means [heartbeat.DefaultInterval]; a negative
// interval means that nothing is sent after the first message.
func WithKeepAlive(every time.Duration) AwaitOption {
	return awaitFunc(func(a *await) { a.every = every })
}

// WithWords sets the text of the messages of [Await], in another language for example. words may be
// called concurrently. If it is nil, panics or does not return within 1 s, the text is that of
// [Waiting.String] from then on. If words returns the text that the client already has, the elapsed time is
// added, because some clients drop a message that is equal to the one before.
func WithWords(words func(Waiting) string) AwaitOption {
	return awaitFunc(func(a *await) { a.words = words })
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
func (a *await) limit(ctx context.Context) time.Duration {
	heard := pulse.Heard(ctx)
	limit, byDefault := a.silent, DefaultAwaitLimit
	if heard {
		limit, byDefault = a.heard, DefaultAwaitProgressLimit
	}
	if a.host > 0 && !heard {
		left := a.host - hostMargin
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
// s ([WithKeepAlive]), so that a client that looks at progress waits too. The text of each is that of
// [Waiting.String], which says what is awaited, how long the wait has taken, and how long it may still
// take; no two in a row are equal. The idle check is held during the wait; the total of the enclosing
// execution keeps running.
//
// If nobody answers within the limit, which is 30 s, or 120 s if the client's request has a progress
// token ([WithLimits]), Await cancels ask's context and returns an error whose text is that of
// [ErrNoAnswer]. For that error, errors.Is finds ErrNoAnswer, errors.As finds a [*timeout.Error], and
// [timeout.ExitCode] returns 124. Return it from the tool unchanged. An ask that ignores its context
// is abandoned 1 s later.
//
// The wait ends before the tool would be stopped: a sixth of what is left of its totals and of ctx's
// deadline, at most 2 s, is left for the answer, and all of a Reserve of [timeout.Config]. If the
// enclosing execution is stopped first, Await returns the *timeout.Error of the wait, which is stopped
// along with it. Otherwise it returns what ask returned. A panic of ask passes through.
//
// Outside an execution Await waits in the same way but sends no updates.
func Await[T any](ctx context.Context, what string, ask func(context.Context) (T, error), opts ...AwaitOption) (T, error) {
	return awaitAny(ctx, "approval of "+what, ErrNoAnswer.Error(), ask, opts)
}

// AwaitReply is [Await] for a reply of the client that is no approval: an answer of its model
// (sampling), a sign-in, its list of roots. The parameter what names the reply, as in "the list of
// roots": the messages begin with "Waiting for the list of roots", and if no reply comes in time, the
// text of the error is "Command timed out waiting for the list of roots. Consider configuring a
// longer timeout." In that error too, errors.Is finds [ErrNoAnswer].
//
// If a tool waits without AwaitReply, its idle limit stops it when the client does not reply.
func AwaitReply[T any](ctx context.Context, what string, ask func(context.Context) (T, error), opts ...AwaitOption) (T, error) {
	what = shorten(what)
	return awaitAny(ctx, what, "Command timed out waiting for "+what+". Consider configuring a longer timeout.", ask, opts)
}

func awaitAny[T any](ctx context.Context, what, expired string, ask func(context.Context) (T, error), opts []AwaitOption) (T, error) {
	var a await
	for _, o := range opts {
		if o != nil {
			o.applyAwait(&a)
		}
	}
	if a.every == 0 {
		a.every = heartbeat.DefaultInterval
	}
	limit, grace := within(ctx, a.limit(ctx))
	defer heartbeat.Hold(ctx)()
	wait, takeBack := a.announce(ctx, what, expired, limit)
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
		// A total that is smaller was left over from the enclosing execution's, which is in
		// e.Limit. And a deadline that the context did not show has come before the limit.
		if e.Kind == timeout.KindTotal && e.Limits.Total == limit && limit > 0 && e.Elapsed >= limit {
			e.Detail = worked(ctx) // of the tool, and not of the wait
			return v, &noAnswer{expired, e}
		}
		if e.Detail == nil && wait != nil {
			e.Detail = wait // with the words for it
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
func (a *await) announce(ctx context.Context, what, expired string, limit time.Duration) (wait any, takeBack func()) {
	c := pulse.Of(ctx)
	if c == nil {
		return nil, func() {}
	}
	w := &waiting{what: shorten(what), expired: expired, limit: limit, words: a.words, cell: c, start: c.Now()}
	u := Update{waiting: w, Message: w.text(0)}
	if before, ok := c.Detail().(*Update); ok && before != nil {
		u.Progress, u.Total = before.Progress, before.Total
	}
	detail := detailOf(u)
	end := c.Interlude(detail)
	// The error of an execution that is stopped now is put into words only later.
	unhook := context.AfterFunc(ctx, w.freeze)
	w.beat(a.every)
	return *detail, func() {
		unhook()
		w.freeze()
		end()
	}
}
