package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/benchmarks/internal/peer"
)

// lateness measures the time from the idle limit of a function until its context ends. The limits of n executions fire
// over the time spread, so that the machine is busy but not overloaded. With bare, each is a time.AfterFunc, which is
// the best that the runtime can do.
//
// lateness collects garbage before the first limit fires. Otherwise a collection might run while limits fire. With 100
// 000 executions of any implementation, it would make some limits late by 60 to 150 ms, because it scans the stacks of
// all goroutines.
func lateness(s scene) ([]metric, error) {
	const spread = 2 * time.Second
	if s.impl == byHand {
		return nil, fmt.Errorf("%s has no idle limit that could be late: take timer-reset", byHand)
	}
	if s.n == 1 {
		return quantiles(alone(s)), nil
	}
	if s.idle <= spread {
		return nil, fmt.Errorf("an idle limit of %v would fall due before the beats, which take %v", s.idle, spread)
	}
	var (
		mu   sync.Mutex
		late = make([]time.Duration, 0, s.n)
		wg   sync.WaitGroup
	)
	record := func(due time.Time) {
		d := time.Since(due)
		mu.Lock()
		late = append(late, d)
		mu.Unlock()
	}
	random := rand.New(rand.NewPCG(1, 2))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	wg.Add(s.n)
	for range s.n {
		wait := time.Duration(random.Int64N(int64(spread)))
		if s.run == nil {
			due := time.Now().Add(wait + s.idle)
			time.AfterFunc(wait+s.idle, func() { record(due); wg.Done() })
			continue
		}
		s.start(ctx, func(ctx context.Context, b peer.Beater) error {
			time.Sleep(wait)
			due := time.Now().Add(s.idle)
			b.Beat()
			<-ctx.Done()
			record(due)
			return nil
		}, wg.Done)
	}
	time.Sleep(s.idle / 2) // most functions have beaten, and no limit has fired
	runtime.GC()
	wg.Wait()
	return quantiles(late), nil
}

// alone measures one execution after the other.
func alone(s scene) (late []time.Duration) {
	const times, idle = 200, 5 * time.Millisecond
	s.limits.Idle = idle
	for range times {
		var due time.Time
		done := make(chan struct{})
		if s.run == nil {
			due = time.Now().Add(idle)
			time.AfterFunc(idle, func() { late = append(late, time.Since(due)); close(done) })
		} else {
			s.start(context.Background(), func(ctx context.Context, b peer.Beater) error {
				due = time.Now().Add(idle)
				b.Beat()
				<-ctx.Done()
				late = append(late, time.Since(due))
				return nil
			}, func() { close(done) })
		}
		<-done
	}
	return late
}

func quantiles(d []time.Duration) []metric {
	slices.Sort(d)
	at := func(q float64) float64 { return d[int(q*float64(len(d)-1))].Seconds() }
	return []metric{{at(0.5), "p50-sec"}, {at(0.99), "p99-sec"}, {at(1), "max-sec"}}
}
