package timeout_test

import (
	"context"
	"errors"
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

// A limit for each worker: the first timeout is the group's error, and cancels the others.
// The beats of a worker also count for the execution that encloses the group, which so goes
// on for as long as any worker does.
func ExampleRun_errgroupFirstTimeout() {
	hosts := []string{"a", "stuck", "b"}
	ended := make([]error, len(hosts))

	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx) // ctx of the enclosing execution
		for i, host := range hosts {
			group.Go(func() error {
				ended[i] = timeout.Run(ctx, func(ctx context.Context) error {
					for ctx.Err() == nil {
						if host != "stuck" {
							heartbeat.Beat(ctx)
						}
						time.Sleep(10 * time.Millisecond)
					}
					return ctx.Err()
				}, timeout.Config{Idle: 300 * time.Millisecond}, timeout.WithName(host))
				return ended[i]
			})
		}
		return group.Wait()
	}, timeout.Default())

	var first *timeout.Error
	if errors.As(err, &first) {
		fmt.Println(first.Kind, "timeout of", first.Tool)
	}
	for i, host := range hosts {
		fmt.Println(host, timeout.ExitCode(ended[i]))
	}
	// Output:
	// idle timeout of stuck
	// a 130
	// stuck 124
	// b 130
}
