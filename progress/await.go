package progress

import (
	"context"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// DefaultAwaitLimit is how long [Await] waits where no limit is given.
const DefaultAwaitLimit = 30 * time.Second

// awaitGrace is for an ask that does not look at its context.
const awaitGrace = time.Second

// ErrNoAnswer is what errors.Is finds when nobody has answered in time. Its text is
// "Command timed out waiting for approval. Consider approving faster or configuring a
// longer timeout."
var ErrNoAnswer error = noAnswerText{}

type noAnswerText struct{}

func (noAnswerText) Error() string {
	return "Command timed out waiting for approval. Consider approving faster or configuring a longer timeout."
}

// A noAnswer is what Await returns then. The timeout under it has the exit code.
type noAnswer struct{ err error }

func (*noAnswer) Error() string { return ErrNoAnswer.Error() }

func (e *noAnswer) Unwrap() []error { return []error{ErrNoAnswer, e.err} }

// An AwaitOption changes how [Await] waits. Where one is given twice, the last counts.
type AwaitOption interface{ applyAwait(*await) }

type await struct {
	limit time.Duration
}

type awaitFunc func(*await)

func (f awaitFunc) applyAwait(a *await) { f(a) }

// WithLimit is how long to wait for the person, in place of [DefaultAwaitLimit]. 0 or less
// is no limit of its own: the total of the execution around bounds it.
func WithLimit(d time.Duration) AwaitOption {
	return awaitFunc(func(a *await) {
		if a.limit = max(d, 0); d == 0 {
			a.limit = DefaultAwaitLimit
		}
	})
}

// Await calls ask, which waits for a person: for an approval, an answer, an elicitation.
// what says what for, and reaches the client in the messages of keep-alive updates,
// "Waiting for approval of ...", one at once and one every 10 s, so that a client that
// looks at progress waits too. The idle check is held meanwhile; the total of the
// execution around runs on.
//
// When nobody has answered within the limit, ask's context is cancelled, and the error is
// one for which errors.Is finds [ErrNoAnswer] and errors.As a [*timeout.Error], so that
// [timeout.ExitCode] of it is 124, and whose text is that of ErrNoAnswer. Return it from the
// tool as it is. An ask that ignores its context is left behind 1 s later. Where the
// execution around is stopped first, the error is that of ask's own execution, which was
// stopped along with it; otherwise it is what ask returned. A panic of ask passes
// through.
//
// Outside an execution it waits just the same, and nothing is sent.
func Await[T any](ctx context.Context, what string, ask func(context.Context) (T, error), opts ...AwaitOption) (T, error) {
	a := await{limit: DefaultAwaitLimit}
	for _, o := range opts {
		if o != nil {
			o.applyAwait(&a)
		}
	}
	defer heartbeat.Hold(ctx)()
	defer announce(ctx, what, a.limit)()
	var v T
	err := heartbeat.Keep(ctx, heartbeat.DefaultInterval, func(ctx context.Context) (err error) {
		v, err = timeout.Do(ctx, func(ctx context.Context) (T, error) {
			v, err := ask(ctx)
			if err != nil {
				err = &answered{err}
			}
			return v, err
		}, timeout.Config{Total: a.limit, Grace: awaitGrace})
		return err
	})
	switch e := err.(type) {
	case *answered:
		return v, e.error
	case *timeout.Error:
		if late, ok := e.Err.(*answered); ok {
			e.Err = late.error
		}
		// A smaller total is what was left of the one around, whose own is in e.Limit. And a
		// deadline that was not shown has come before the limit.
		if e.Kind == timeout.KindTotal && e.Limits.Total == a.limit && a.limit > 0 && e.Elapsed >= a.limit {
			return v, &noAnswer{e}
		}
	}
	return v, err
}

// answered tells an error of ask, which may itself be a *timeout.Error, from one of the wait.
type answered struct{ error }

// announce makes the wait the message that beats repeat, until takeBack is called. It
// leaves the tool's own figures as they are: waiting is no progress. The end of the wait makes no
// notification, since after an expiry the answer of the tool is about to follow.
func announce(ctx context.Context, what string, limit time.Duration) (takeBack func()) {
	c := pulse.Of(ctx)
	if c == nil {
		return func() {}
	}
	u := Update{waiting: true}
	if before, ok := c.Detail().(*Update); ok && before != nil {
		u.Progress, u.Total = before.Progress, before.Total
	}
	u.Message = "Waiting for approval of " + what
	if limit > 0 {
		u.Message += fmt.Sprintf(" (up to %v)", limit)
	}
	return c.Interlude(detailOf(u))
}
