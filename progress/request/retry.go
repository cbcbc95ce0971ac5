package request

import (
	"context"
	"errors"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/backoff"
	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// IdempotencyKey is the key in the _meta of a tools/call under which all attempts of one call have the same
// string, so that a server can answer a repeated attempt with the result of the first.
const IdempotencyKey = "io.github.tooldeadline/idempotency-key"

// A Backoff sets how often to try again, and when. The zero Backoff tries again three times, after
// 2 s, 4 s and 8 s.
type Backoff struct {
	// Retries is the number of further tries after the first one has failed. 0 means 3, and a negative
	// value means none. [math.MaxInt] is as many as it takes.
	Retries int
	// First is the wait before the first retry. 0 or less means 2 s. Each further wait is twice as
	// long, up to Max.
	First time.Duration
	// Max is the longest wait. 0 or less means 1 min. A Max below First means First: all waits are equal.
	Max time.Duration
}

// Retry calls do until do succeeds, returns an error for which again returns false, or has been
// called as often as b allows. It returns what do returned last. It calls do at least once, and
// not again after ctx has ended. It waits for do, which has to end with ctx. It waits for again, which runs on a
// goroutine of its own, until 1 s after ctx has ended; then the error is that of do. A panic of either is a panic of
// Retry.
//
// Retry panics with a [*timeout.ConfigError] if again or do is nil.
//
// If ctx ends while Retry waits for the next try, the error is an [*Error], as for a request that is
// stopped: errors.Is finds context.DeadlineExceeded if ctx's deadline has passed, and otherwise
// context.Canceled, and ctx's cause. The text of the *Error includes the error of the last try, but errors.Is and
// errors.As do not find that error, because it is not the reason why Retry stops.
func Retry[T any](ctx context.Context, b Backoff, again func(error) bool, do func() (T, error)) (T, error) {
	if again == nil {
		panic(&timeout.ConfigError{Key: "again", Value: "nil", Accepted: "one that is not nil"})
	}
	if do == nil {
		panic(&timeout.ConfigError{Key: "do", Value: "nil", Accepted: "one that is not nil"})
	}
	if b.Retries == 0 {
		b.Retries = 3
	}
	waits := backoff.Waits{First: b.First, Max: b.Max, Factor: 2}
	if waits.First <= 0 {
		waits.First = 2 * time.Second
	}
	if waits.Max <= 0 {
		waits.Max = time.Minute
	}
	for try := 0; ; try++ {
		value, err := do()
		if err == nil || try >= b.Retries || over(ctx) {
			return value, err
		}
		more, _ := timeout.Do(ctx, func(context.Context) (bool, error) { return again(err), nil }, timeout.Config{Grace: time.Second})
		if !more {
			return value, err
		}
		if stop := pause(ctx, waits.Next()); stop != nil {
			return value, &Error{Doing: "waiting to try again (" + texts.Of(err) + ")", Stop: stop}
		}
	}
}

// TimedOut reports whether err is the error of a request that a limit stopped. Such a request may
// be sent again if it only reads. TimedOut waits for the methods of err.
func TimedOut(err error) bool {
	var stop *Error
	return errors.As(err, &stop) && stop.Timeout()
}

// Permanent reports whether a connection that failed with err will fail again, because the command
// was not found or may not be executed, or the socket does not exist. Permanent waits for the methods of err.
func Permanent(err error) bool {
	return errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}

// Repeatable returns a function that reports whether requests of a method may be sent again: the
// method is one of methods, or matches one of them that is a prefix with a star, such as
// "resources/*". A tools/call must be named: no pattern matches it, since it may do something. Two kinds of
// requests may never be sent again, even if methods names them: a request of the handshake, which belongs to a
// connection, and one that opens a stream.
func Repeatable(methods ...string) func(method string) bool {
	methods = slices.Clone(methods)
	return func(method string) bool {
		switch method {
		case "tools/call":
			return slices.Contains(methods, method)
		case "initialize", "server/discover", "subscriptions/listen":
			return false
		}
		return slices.ContainsFunc(methods, func(m string) bool {
			prefix, all := strings.CutSuffix(m, "*")
			return m == method || all && strings.HasPrefix(method, prefix)
		})
	}
}

// over reports whether ctx has ended or its deadline has passed. A request that the deadline has stopped may return
// before the timer of ctx has fired.
func over(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// pause waits for d. It does so as an execution, so that the end of ctx gives the same error as during a request.
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
