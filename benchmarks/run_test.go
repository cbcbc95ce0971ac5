package benchmarks

import (
	"context"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/benchmarks/internal/peer"
	"github.com/tooldeadline/tooldeadline/timeout"
)

func nothing(context.Context, peer.Beater) error { return nil }

// caller is a context as a request has it: it can be cancelled.
func caller(b *testing.B) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(cancel)
	return ctx
}

var (
	totalOnly = peer.Limits{Total: forever}
	totalIdle = peer.Limits{Total: forever, Idle: time.Minute}

	failsafe = peer.NewFailsafe(forever)
)

type contender struct {
	name string
	run  peer.Run
}

// library is the library without a peer's wrapping, as it is called by a user.
func library(l peer.Limits, more ...timeout.Option) peer.Run {
	empty := func(context.Context) error { return nil }
	opts := append([]timeout.Option{timeout.Config{Total: l.Total, Idle: l.Idle}}, more...)
	return func(ctx context.Context, _ peer.Limits, _ peer.Func) error {
		return timeout.Run(ctx, empty, opts...)
	}
}

// named is what WithName does, by hand: the goroutine carries a profiler label.
func named(run peer.Run) peer.Run {
	return func(ctx context.Context, l peer.Limits, fn peer.Func) error {
		return run(ctx, l, func(ctx context.Context, b peer.Beater) (err error) {
			pprof.Do(ctx, pprof.Labels("tool", "compile"), func(ctx context.Context) { err = fn(ctx, b) })
			return err
		})
	}
}

// BenchmarkRun is one supervised run of an empty function: the price of supervision.
// failsafe-sync does not start a goroutine, and so waits for a function that ignores
// its context; it is there for completeness.
func BenchmarkRun(b *testing.B) {
	b.Run("limits=total", func(b *testing.B) { runs(b, totalOnly, caller, onTotal()) })
	b.Run("limits=idle", func(b *testing.B) { runs(b, totalIdle, caller, onIdle()) })
	b.Run("limits=deadline", func(b *testing.B) {
		runs(b, totalIdle, deadline, []contender{
			{"tooldeadline", library(totalIdle)},
			{"timer-reset", peer.TimerReset},
		})
	})
	b.Run("limits=named", func(b *testing.B) {
		runs(b, totalIdle, caller, []contender{
			{"tooldeadline", library(totalIdle, timeout.WithName("compile"))},
			{"timer-reset", named(peer.TimerReset)},
		})
	})
}

// BenchmarkRunParallel is BenchmarkRun on all processors at once.
func BenchmarkRunParallel(b *testing.B) {
	b.Run("limits=total", func(b *testing.B) { parallelRuns(b, totalOnly, onTotal()) })
	b.Run("limits=idle", func(b *testing.B) { parallelRuns(b, totalIdle, onIdle()) })
}

func onTotal() []contender {
	return []contender{
		{"tooldeadline", library(totalOnly)},
		{"by-hand", peer.ByHand},
		{"failsafe-sync", failsafe.Sync},
		{"failsafe-async", failsafe.Async},
	}
}

func onIdle() []contender {
	return []contender{
		{"tooldeadline", library(totalIdle)},
		{"timer-reset", peer.TimerReset},
		{"polling", peer.Polling},
	}
}

// deadline is a caller's context whose deadline comes before the total.
func deadline(b *testing.B) context.Context {
	ctx, cancel := context.WithTimeout(caller(b), forever/2)
	b.Cleanup(cancel)
	return ctx
}

func runs(b *testing.B, l peer.Limits, parent func(*testing.B) context.Context, all []contender) {
	for _, c := range all {
		b.Run("impl="+c.name, func(b *testing.B) {
			ctx := parent(b)
			b.ReportAllocs()
			for b.Loop() {
				if err := c.run(ctx, l, nothing); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// parallelRuns has a caller for each goroutine: requests have one each, and
// children of the same one would wait for its lock.
func parallelRuns(b *testing.B, l peer.Limits, all []contender) {
	for _, c := range all {
		b.Run("impl="+c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				for pb.Next() {
					if err := c.run(ctx, l, nothing); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
