package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/benchmarks/internal/peer"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// mass measures the time from the instant at which n idle limits fire until every call has returned its error. It also
// measures the fraction of the errors that have the stack of the function, as errors of the library may.
func mass(s scene) ([]metric, error) {
	if s.run == nil {
		return nil, errors.New("mass: want an implementation with idle limits, not bare")
	}
	var (
		ready, wg sync.WaitGroup
		stacks    atomic.Int64
		beaters   = make([]peer.Beater, s.n)
	)
	ready.Add(s.n)
	wg.Add(s.n)
	for i := range s.n {
		go func() {
			defer wg.Done()
			err := s.run(context.Background(), s.limits, func(ctx context.Context, b peer.Beater) error {
				beaters[i] = b
				ready.Done()
				<-ctx.Done()
				return nil
			})
			if e := (*timeout.Error)(nil); errors.As(err, &e) && e.Stack != nil {
				stacks.Add(1)
			}
		}()
	}
	started := time.Now()
	ready.Wait()
	if took := time.Since(started); took > s.idle/2 {
		return nil, fmt.Errorf("%d executions took %v to start, too long for an idle limit of %v", s.n, took, s.idle)
	}
	runtime.GC() // so that no collection begins while the calls return; see lateness
	for _, b := range beaters {
		b.Beat()
	}
	due := time.Now().Add(s.idle) // when the last limit falls due
	wg.Wait()
	return []metric{
		{time.Since(due).Seconds(), "all-returned-sec"},
		{float64(stacks.Load()) / float64(s.n), "stacks/run"},
	}, nil
}
