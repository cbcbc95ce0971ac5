package benchmarks

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/benchmarks/internal/peer"
	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// forever is a limit that no benchmark reaches.
const forever = time.Hour

// execution starts an execution that lasts until the benchmark ends, and returns its
// context.
func execution(b *testing.B) context.Context {
	b.Helper()
	caller, cancel := context.WithCancel(context.Background())
	ctxs := make(chan context.Context)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = timeout.Run(caller, func(ctx context.Context) error {
			ctxs <- ctx
			<-ctx.Done()
			return nil
		}, timeout.Config{Total: forever, Idle: forever})
	}()
	b.Cleanup(func() { cancel(); <-ended })
	return <-ctxs
}

func monitor(b *testing.B) *heartbeat.Monitor { return heartbeat.FromContext(execution(b)) }

func resetDog(b *testing.B) *peer.ResetDog {
	d := peer.NewResetDog(forever, func() {})
	b.Cleanup(d.Stop)
	return d
}

func mutexDog(b *testing.B) *peer.MutexDog {
	d := peer.NewMutexDog(forever, func() {})
	b.Cleanup(d.Stop)
	return d
}

func pollDog(b *testing.B) *peer.PollDog {
	d := peer.NewPollDog(forever, func() {})
	b.Cleanup(d.Stop)
	return d
}

// BenchmarkBeat is one heartbeat.
//
//   - hot: one goroutine beats as fast as it can. The library absorbs nearly all of
//     these; the peers have no such thing.
//   - shared: as many goroutines as there are processors do so on one execution.
//   - sparse: the beats go round so many executions that none of them is ever in a
//     burst. Every beat of the library reads the clock and is exact.
//
// The clock is what any exact beat has to pay.
func BenchmarkBeat(b *testing.B) {
	b.Run("load=hot", func(b *testing.B) {
		b.Run("impl=tooldeadline", func(b *testing.B) { hot(b, monitor(b)) })
		b.Run("impl=timer-reset", func(b *testing.B) { hot(b, resetDog(b)) })
		b.Run("impl=mutex", func(b *testing.B) { hot(b, mutexDog(b)) })
		b.Run("impl=polling", func(b *testing.B) { hot(b, pollDog(b)) })
	})
	b.Run("load=shared", func(b *testing.B) {
		b.Run("impl=tooldeadline", func(b *testing.B) { shared(b, monitor(b)) })
		b.Run("impl=timer-reset", func(b *testing.B) { shared(b, resetDog(b)) })
		b.Run("impl=mutex", func(b *testing.B) { shared(b, mutexDog(b)) })
		b.Run("impl=polling", func(b *testing.B) { shared(b, pollDog(b)) })
	})
	b.Run("load=sparse", func(b *testing.B) {
		b.Run("impl=tooldeadline", func(b *testing.B) {
			beats := uint64(0)
			for _, m := range sparse(b, monitor) {
				beats += m.Count()
			}
			if n := uint64(b.N); beats != n {
				b.Errorf("%d of %d beats were recorded: the rest was absorbed, so this is not sparse", beats, n)
			}
		})
		b.Run("impl=timer-reset", func(b *testing.B) { sparse(b, resetDog) })
		b.Run("impl=mutex", func(b *testing.B) { sparse(b, mutexDog) })
		b.Run("impl=polling", func(b *testing.B) { sparse(b, pollDog) })
		b.Run("impl=clock", func(b *testing.B) {
			sparse(b, func(*testing.B) *clockReader { return &clockReader{base: time.Now()} })
		})
	})
}

func hot[T peer.Beater](b *testing.B, t T) {
	b.ReportAllocs()
	for b.Loop() {
		t.Beat()
	}
}

func shared[T peer.Beater](b *testing.B, t T) {
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			t.Beat()
		}
	})
}

// round is how many executions the sparse beats go round. A burst is more than a
// hundred beats in a millisecond, so with this many, one needs more than fifty million
// beats a second.
const round = 512

func sparse[T peer.Beater](b *testing.B, start func(*testing.B) T) []T {
	all := make([]T, round)
	for i := range all {
		all[i] = start(b)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		all[i%round].Beat()
		i++
	}
	return all
}

type clockReader struct {
	base time.Time
	last time.Duration
}

func (c *clockReader) Beat() { c.last = time.Since(c.base) }

type otherKey int

// deeper puts ctx under n contexts, each with a value that nobody asks for.
func deeper(ctx context.Context, n int) context.Context {
	for i := range n {
		ctx = context.WithValue(ctx, otherKey(i), i)
	}
	return ctx
}

// BenchmarkBeatContext is a heartbeat that has to look its execution up, in a burst,
// where the look-up is most of it, against a look-up of anything at that depth.
func BenchmarkBeatContext(b *testing.B) {
	type key struct{}
	for _, depth := range []int{0, 1, 3, 10} {
		b.Run("depth="+strconv.Itoa(depth), func(b *testing.B) {
			b.Run("impl=tooldeadline", func(b *testing.B) {
				ctx := deeper(execution(b), depth)
				b.ReportAllocs()
				for b.Loop() {
					heartbeat.Beat(ctx)
				}
			})
			b.Run("impl=bare-value", func(b *testing.B) {
				value := new(atomic.Int64)
				ctx := deeper(context.WithValue(context.Background(), key{}, value), depth)
				b.ReportAllocs()
				for b.Loop() {
					if v, _ := ctx.Value(key{}).(*atomic.Int64); v != value {
						b.Fatal("not found")
					}
				}
			})
		})
	}
}

// BenchmarkBeatWith is a heartbeat with a detail, in a burst.
func BenchmarkBeatWith(b *testing.B) {
	detail := &struct{ progress int }{1}
	b.Run("impl=tooldeadline", func(b *testing.B) {
		ctx := execution(b)
		b.ReportAllocs()
		for b.Loop() {
			heartbeat.BeatWith(ctx, detail)
		}
	})
	// A timer that is reset, and the detail in an atomic, found through the context.
	b.Run("impl=timer-reset", func(b *testing.B) {
		type key struct{}
		type dogWith struct {
			*peer.ResetDog
			detail atomic.Pointer[any]
		}
		ctx := context.WithValue(context.Background(), key{}, &dogWith{ResetDog: resetDog(b)})
		b.ReportAllocs()
		for b.Loop() {
			d := ctx.Value(key{}).(*dogWith)
			v := any(detail)
			d.detail.Store(&v)
			d.Beat()
		}
	})
}
