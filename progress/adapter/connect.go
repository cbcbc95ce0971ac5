package adapter

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/request"
)

// ReconnectInterval is the time from the final failure of a connection until it is tried again, if the
// program wants that.
const ReconnectInterval = 30 * time.Second

// Standing calls connect until it succeeds, 30 s after each failure, as long as failed returns true for the
// error; a nil failed never does. When ctx ends in between, the error is that of [request.Retry].
func Standing[T any](ctx context.Context, failed func(error) (again bool), connect func() (T, error)) (T, error) {
	value, err := connect()
	for connected := true; connected && err != nil && failed != nil && ctx.Err() == nil && failed(err); {
		connected = false
		waited, last := false, err
		value, err = request.Retry(ctx, request.Backoff{Retries: 1, First: ReconnectInterval}, func(error) bool { return true }, func() (T, error) {
			if !waited { // the failure is that of the round before
				waited = true
				return value, last
			}
			connected = true
			return connect()
		})
	}
	return value, err
}

// MaxPages is the largest number of pages of a list that a client reads.
const MaxPages = 100
