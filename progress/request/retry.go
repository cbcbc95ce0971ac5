package request

import (
	"context"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// IdempotencyKey is the key in the _meta of a tools/call under which all attempts of one call have the same
// string, so that a server can answer the second with the result of the first.
const IdempotencyKey = "io.github.tooldeadline/idempotency-key"

// A Backoff says how often to try again, and when. The zero Backoff is three times, after
// 2 s, 4 s and 8 s.
type Backoff struct {
	// Retries is how often to try again after the first try has failed; 0 is 3 times,
	// less is not at all.
	Retries int
	// First is how long to wait before the first of them; 0 or less is 2 s. Each further
	// wait is twice as long, up to the longer of First and 1 min.
	First time.Duration
}

// Retry calls do until it succeeds, returns an error for which again is false, or has been
// called as often as b allows, and returns what it returned last. It calls do once at the
// least, and not again when ctx is over.
//
// When ctx ends while Retry waits for the next try, the error is an [*Error] as that of a
// request that is stopped: it is context.Canceled, or context.DeadlineExceeded where ctx had a
// deadline, and has ctx's cause in its tree. The last try's error is in its text, and not in
// its tree, since it is not why there is no other try.
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
