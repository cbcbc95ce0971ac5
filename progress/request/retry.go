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

// IdempotencyKey is a key in the _meta of a tools/call. Its value is a string that is the same in all attempts of one
// call, so that a server can answer a repeated attempt with the result of the first.
const IdempotencyKey = "io.github.tooldeadline/idempotency-key"

// A Backoff sets how often to try again, and when. The zero Backoff tries again three times, after
// 2 s, 4 s and 8 s.
type Backoff struct {
	// Retries is the number of further attempts after the first one has failed. 0 means 3, and a negative value means
	// none. Use [math.MaxInt] for no limit.
	Retries int
	// First is the wait before the first retry. 0 or less means 2 s. Each further wait is twice the wait before it, up
	// to Max.
	First time.Duration
	// Max is the longest wait. 0 or less means 1 min. A Max below First means First: all waits are equal.
	Max time.Duration
}

// Retry calls do until do succeeds, do returns an error for which again returns false, or b allows no further
// attempt. Retry returns the results of the last call of do. It calls do at least once, and not again after ctx has
// ended. It waits for do without a bound, so do must return when ctx ends. It calls again on another goroutine, and
// returns the results of do if again has not returned 1 s after ctx has ended. A panic of do or again is a panic of
// Retry.
//
// Retry panics with a [*timeout.ConfigError] if again or do is nil.
//
// If ctx ends while Retry waits for the next attempt, the error is an [*Error], as for a request that is stopped:
// errors.Is finds context.DeadlineExceeded if ctx's deadline has passed, and otherwise context.Canceled, and ctx's
// cause. The text of the *Error includes the error of the last attempt, but errors.Is and errors.As do not find that
// error, because it is not the reason why Retry stops.
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
		more, _ := timeout.Do(ctx, func(context.Context) (bool, error) { return again(err), nil }, waiting...)
		if !more {
			return value, err
		}
		if stop := pause(ctx, waits.Next()); stop != nil {
			return value, &Error{Doing: "waiting to try again (" + texts.Of(err) + ")", Stop: stop}
		}
	}
}

// TimedOut reports whether err is, or wraps, the [*Error] of a request that a limit stopped. Such a request may be
// repeated if it only reads. TimedOut waits for the methods of err that errors.As calls.
func TimedOut(err error) bool {
	var stop *Error
	return errors.As(err, &stop) && stop.Timeout()
}

// Permanent reports whether an attempt to connect that failed with err will fail again, because the command was not
// found or may not be executed, or the socket does not exist. Permanent waits for the methods of err that errors.Is
// calls.
func Permanent(err error) bool {
	return errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}

// Repeatable returns a function that reports whether requests of a method may be repeated: methods contains the method,
// or a prefix of it with a star, such as "resources/*". No prefix matches tools/call, because a call may have an
// effect. The requests of the handshake (initialize and server/discover), which belong to a connection, and
// subscriptions/listen, which opens a stream, may never be repeated, even if methods contains them.
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

// waiting has the options of the executions between two attempts.
var waiting = []timeout.Option{timeout.Config{Grace: time.Second}, timeout.WithOperation(timeout.OperationRequest)}

// pause waits for d and returns nil, or returns the reason why ctx has ended first. It waits in an execution, so that
// the error is the same as during a request.
func pause(ctx context.Context, d time.Duration) *timeout.Error {
	err := timeout.Run(ctx, func(ctx context.Context) error {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
		return nil
	}, waiting...)
	stop, _ := err.(*timeout.Error)
	return stop
}
