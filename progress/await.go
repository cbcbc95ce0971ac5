package progress

import (
	"context"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// DefaultAwaitLimit is how long [Await] waits by default.
const DefaultAwaitLimit = 30 * time.Second

// awaitGrace is how long an ask that ignores its context is waited for.
const awaitGrace = time.Second

// ErrNoAnswer is the error of [Await] when nobody has answered in time; test for it with errors.Is.
// Its text is "Command timed out waiting for approval. Consider approving faster or configuring a
// longer timeout."
var ErrNoAnswer error = noAnswerText{}

type noAnswerText struct{}

func (noAnswerText) Error() string {
	return "Command timed out waiting for approval. Consider approving faster or configuring a longer timeout."
}

// A noAnswer is the error that Await returns when nobody has answered. The timeout under it has the
// exit code.
type noAnswer struct{ err error }

func (*noAnswer) Error() string { return ErrNoAnswer.Error() }

func (e *noAnswer) Unwrap() []error { return []error{ErrNoAnswer, e.err} }

// An AwaitOption configures [Await]. If the same option is given twice, the last one counts.
type AwaitOption interface{ applyAwait(*await) }

type await struct {
	limit time.Duration
}

type awaitFunc func(*await)

func (f awaitFunc) applyAwait(a *await) { f(a) }

// WithLimit sets how long [Await] waits for the person. A negative limit means none: only the total
// of the enclosing execution bounds the wait. 0 means [DefaultAwaitLimit].
func WithLimit(d time.Duration) AwaitOption {
	return awaitFunc(func(a *await) {
		if a.limit = max(d, 0); d == 0 {
			a.limit = DefaultAwaitLimit
		}
	})
}

// Await calls ask, which waits for a person: for an approval, an answer, an elicitation. Meanwhile
// it sends keep-alive updates to the client, one at once and one every 10 s, with the message
// "Waiting for approval of" and the text of what, so that a client that looks at progress waits
// too. The idle check is held during the wait; the total of the enclosing execution keeps running.
//
// If nobody answers within the limit, Await cancels ask's context and returns an error whose text
// is that of [ErrNoAnswer]. For that error, errors.Is finds ErrNoAnswer, errors.As finds a
// [*timeout.Error], and [timeout.ExitCode] returns 124. Return it from the tool unchanged. An ask
// that ignores its context is abandoned 1 s later.
//
// If the enclosing execution is stopped first, Await returns the *timeout.Error of the wait, which
// is stopped along with it. Otherwise it returns what ask returned. A panic of ask passes through.
//
// Outside an execution Await waits in the same way but sends no updates.
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
		// A total that is smaller was left over from the enclosing execution's, which is in
		// e.Limit. And a deadline that the context did not show has come before the limit.
		if e.Kind == timeout.KindTotal && e.Limits.Total == a.limit && a.limit > 0 && e.Elapsed >= a.limit {
			return v, &noAnswer{e}
		}
	}
	return v, err
}

// answered distinguishes an error of ask, which may itself be a *timeout.Error, from an error of
// the wait.
type answered struct{ error }

// announce makes the wait the message that beats repeat, until takeBack is called. It leaves the
// tool's figures as they are, since waiting is no progress. The end of the wait sends no
// notification: after an expiry the tool's answer is about to follow.
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
