package adapter

import (
	"context"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// ReconnectInterval is how long [Standing] waits after a failed connection before it tries again.
const ReconnectInterval = 30 * time.Second

// Standing calls connect, and again 30 s after each failure, until connect succeeds or failed returns false
// for the error. A nil failed means one call only. If ctx ends after failed has returned true, the error is
// as that of [request.Retry] when ctx ends while it waits.
//
// Standing waits for connect, which has to end with ctx. It waits for failed, which runs on a goroutine of its
// own, until 1 s after ctx has ended; then the error is that of connect. A panic of either is a panic of Standing.
func Standing[T any](ctx context.Context, failed func(error) (again bool), connect func() (T, error)) (T, error) {
	for {
		value, err := connect()
		if err == nil || failed == nil || ctx.Err() != nil {
			return value, err
		}
		again, _ := timeout.Do(ctx, func(context.Context) (bool, error) { return failed(err), nil }, timeout.Config{Grace: time.Second})
		if !again {
			return value, err
		}
		ended := timeout.Run(ctx, func(ctx context.Context) error {
			timer := time.NewTimer(ReconnectInterval)
			defer timer.Stop()
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
			return nil
		}, timeout.Config{Grace: time.Second})
		if stop, ok := ended.(*timeout.Error); ok {
			return value, &request.Error{Doing: fmt.Sprintf("waiting to try again (%v)", err), Stop: stop}
		}
	}
}

// MaxPages is the largest number of pages of a list that a client reads.
const MaxPages = 100
