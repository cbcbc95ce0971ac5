package request

import (
	"context"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// IdempotencyKey is the key in the _meta of a tools/call under which all attempts of one call have the same
// string, so that a server can answer a repeated attempt with the result of the first.
const IdempotencyKey = "io.github.tooldeadline/idempotency-key"

// A Backoff sets how often to try again, and when. The zero Backoff tries again three times, after
// 2 s, 4 s and 8 s.
type Backoff struct {
	// Retries is the number of further tries after the first one has failed. 0 means 3, and a negative
	// value means none.
	Retries int
	// First is the wait before the first retry. 0 or less means 2 s. Each further wait is twice as
	// long, up to the longer of First and 1 min.
	First time.Duration
}

// Retry calls do until do succeeds, returns an error for which again returns false, or has been
// called as often as b allows. It returns what do returned last. It calls do at least once, and
// not again after ctx has ended. It waits for do, which has to end with ctx, and for again.
//
// If ctx ends while Retry waits for the next try, the error is an [*Error], as for a request that is
// stopped: errors.Is finds context.DeadlineExceeded if ctx's deadline has passed, and otherwise
// context.Canceled, and ctx's cause. The text of the *Error includes the error of the last try, but errors.Is and
// errors.As do not find that error, because it is not the reason why Retry stops.
func Retry[T any](ctx context.Context, b Backoff, again func(error) bool, do func() (T, error)) (T, error) {
	if b.Retries == 0 {
		b.Retries = 3
	}
	if b.First <= 0 {
		b.First = 2 * time.Second
	}
	wait, longest := b.First, max(b.First, time.Minute)
	for try := 0; ; try++ {
		value, err := do()
		if err == nil || try >= b.Retries || over(ctx) || !again(err) {
			return value, err
		}
		if stop := pause(ctx, wait); stop != nil {
			return value, &Error{Doing: fmt.Sprintf("waiting to try again (%v)", err), Stop: stop}
		}
		if wait > longest/2 {
			wait = longest
		} else {
			wait *= 2
		}
	}
}

// over reports whether ctx has ended, or is to end now: the request that its deadline has stopped
// may be back before its own timer has fired.
func over(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// pause waits for d, as an execution, so that the end of ctx is what it is for a request.
func pause(ctx context.Context, d time.Duration) *timeout.Error {
	err := timeout.Run(ctx, func(ctx context.Context) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		return nil
	}, timeout.Config{Grace: time.Second})
	stop, _ := err.(*timeout.Error)
	return stop
}
