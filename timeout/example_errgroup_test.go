package timeout_test

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Workers of one execution: a beat of any of them renews its idle limit, and a limit stops
// them all.
//
// The group's context must be made from the one that the function was given: that is the one
// which carries the heartbeat and which a limit cancels. Workers of a group that was made
// from the caller's context beat nothing, and run on.
func ExampleRun_errgroup() {
	pages := make([]string, 30)
	limits := timeout.Config{Total: time.Minute, Idle: 500 * time.Millisecond}

	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		group, groupCtx := errgroup.WithContext(ctx) // ctx of the execution
		group.SetLimit(3)
		for range pages {
			group.Go(func() error {
				// Ten rounds of this take longer together than the idle limit.
				select {
				case <-time.After(60 * time.Millisecond): // fetch a page
				case <-groupCtx.Done():
					return groupCtx.Err()
				}
				heartbeat.Beat(groupCtx)
				return nil
			})
		}
		err := group.Wait()
		// Wait has cancelled groupCtx: the next steps need ctx.
		fmt.Println(heartbeat.FromContext(ctx).Count(), "beats,", ctx.Err())
		return err
	}, limits)
	fmt.Println(err)
	// Output:
	// 30 beats, <nil>
	// <nil>
}
