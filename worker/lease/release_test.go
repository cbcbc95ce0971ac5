package lease_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/worker/lease"
)

// SPEC 13.5: a renewal that succeeds although it was cancelled may return while the release begins. The race detector
// judges.
func TestRenewalReturnsAtTheRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 500 {
			begun := time.Now()
			ended := func() bool { return time.Since(begun) >= 15*time.Second }
			l := lease.Lease{
				Duration: time.Minute, Every: 10 * time.Second,
				Renew: func(ctx context.Context, _ lease.Checkpoint) error {
					time.Sleep(5 * time.Second)
					for ctx.Err() == nil && ended() { // a wait would take longer than the release takes to begin
					}
					return nil
				},
				Release: func(context.Context, lease.Checkpoint) error { return nil },
			}
			if err := lease.Run(t.Context(), l, func(context.Context) error {
				time.Sleep(15 * time.Second)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
