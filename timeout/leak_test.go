package timeout_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// settled waits for goroutines that are on their way out.
func settled(t *testing.T, want int) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for runtime.NumGoroutine() > want {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, want at most %d:\n%s", runtime.NumGoroutine(), want, buf[:runtime.Stack(buf, true)])
		}
		time.Sleep(time.Millisecond)
	}
}

// heapInUse is how much of the heap is in use, in bytes, with no garbage in it.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// SPEC 3.15: nothing is left of thousands of executions, and nothing hangs on the caller's
// context, which outlives them all.
func TestNothingIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	plain, cancel := context.WithCancel(context.Background())
	defer cancel()
	deadline, cancelDeadline := context.WithTimeout(plain, time.Hour)
	defer cancelDeadline()
	callers := []context.Context{context.Background(), plain, deadline}
	start := heapInUse()
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 4_000 {
				var err error
				switch i % 25 {
				case 0: // stopped by a limit
					err = timeout.Run(callers[i%3], func(ctx context.Context) error {
						<-ctx.Done()
						return nil
					}, timeout.Config{Total: time.Microsecond})
					if errors.Is(err, timeout.ErrTotal) {
						err = nil
					}
				case 1: // holds, relays and nests, and cleans up nothing
					err = timeout.Run(callers[i%3], func(ctx context.Context) error {
						heartbeat.Hold(ctx)
						heartbeat.Relay(ctx, time.Hour, func(context.Context, any) {})
						heartbeat.BeatWith(ctx, worker)
						return timeout.Run(ctx, func(ctx context.Context) error { heartbeat.Hold(ctx); return nil })
					})
				default:
					err = timeout.Run(callers[i%3], func(ctx context.Context) error { heartbeat.Beat(ctx); return nil })
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	settled(t, before)
	// Timers with an hour to go would hold their executions, many MB of them.
	if grown := heapInUse() - start; grown > 8<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
}

// SPEC 3.15: of an abandoned execution, the function's goroutine is left, and that is
// all: the context is let go of by the caller's.
func TestAbandonedLeavesOneGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	release := make(chan struct{})
	const n = 100
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			err := timeout.Run(context.Background(), func(context.Context) error { <-release; return nil },
				timeout.Config{Idle: time.Millisecond, Grace: time.Millisecond})
			if e := stopped(t, err); !e.Abandoned {
				t.Errorf("not abandoned: %v", err)
			}
		})
	}
	wg.Wait()
	settled(t, before+n)
	if timeout.AbandonedCount() != n {
		t.Errorf("%d abandoned, want %d", timeout.AbandonedCount(), n)
	}
	close(release)
	settled(t, before)
	// A goroutine of before may have ended in place of the last of ours.
	for end := time.Now().Add(10 * time.Second); timeout.AbandonedCount() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d abandoned, want none", timeout.AbandonedCount())
		}
	}
}

// SPEC 3.15: an enclosing execution keeps none that has ended while Closing entered it there.
func TestClosingAtTheEnd(t *testing.T) {
	const n = 20_000
	given, asked := make([]atomic.Pointer[context.Context], n), make([]atomic.Bool, n)
	var asking sync.WaitGroup
	asking.Go(func() {
		for i := range given {
			for given[i].Load() == nil {
				runtime.Gosched()
			}
			for range i % 1000 { // so that the call falls on each moment of the end
				asked[i].Load()
			}
			timeout.Closing(*given[i].Swap(nil))
			asked[i].Store(true)
		}
	})
	err := timeout.Run(t.Context(), func(outer context.Context) error {
		all := make([]weak.Pointer[timeout.Execution], n)
		for i := range n {
			_ = timeout.Run(outer, func(ctx context.Context) error {
				all[i] = weak.Make(timeout.FromContext(ctx))
				given[i].Store(&ctx)
				return nil
			}, timeout.Config{})
			for !asked[i].Load() {
				runtime.Gosched()
			}
		}
		asking.Wait()
		runtime.GC()
		runtime.GC()
		kept := 0
		for _, x := range all {
			if x.Value() != nil {
				kept++
			}
		}
		if kept > 1 { // a register may hold the last
			t.Errorf("%d executions are kept", kept)
		}
		return nil
	}, timeout.Config{})
	if err != nil {
		t.Error(err)
	}
}
