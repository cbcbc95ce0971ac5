package timeout_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

type spanKey struct{}

// span is what a trace would do.
func span(name string) timeout.Hooks {
	return timeout.Hooks{Context: func(ctx context.Context, _ timeout.Snapshot) context.Context {
		return context.WithValue(ctx, spanKey{}, spanOf(ctx)+"/"+name)
	}}
}

func spanOf(ctx context.Context) string { s, _ := ctx.Value(spanKey{}).(string); return s }

// SPEC 4.7: the values of the context that a hook has returned are the function's, and those of what
// it calls, of the hooks and of the log.
func TestContextHook(t *testing.T) {
	defer timeout.Watch(span("w"))()
	got := map[string]string{}
	log := slog.New(&handler{do: func(ctx context.Context, _ string) { got["log"] = spanOf(ctx) }})
	err := timeout.Run(context.WithValue(t.Context(), spanKey{}, "client"), func(ctx context.Context) error {
		got["function"] = spanOf(ctx)
		return timeout.Run(ctx, func(ctx context.Context) error {
			got["within"] = spanOf(ctx)
			<-ctx.Done()
			return nil
		}, timeout.Config{Total: time.Millisecond}, timeout.WithLogger(log))
	}, timeout.Config{}, timeout.WithHooks(span("a")), timeout.WithHooks(span("b")),
		timeout.WithHooks(timeout.Hooks{Finished: func(ctx context.Context, s timeout.Snapshot) { got["finished"] = spanOf(ctx) }}))
	want := map[string]string{"function": "client/w/a/b", "within": "client/w/a/b/w", "log": "client/w/a/b/w", "finished": "client/w/a/b"}
	if diff := cmp.Diff(want, got); diff != "" || err == nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// A handler calls a function with each record.
type handler struct {
	slog.Handler
	do func(ctx context.Context, message string)
}

func (h *handler) Enabled(context.Context, slog.Level) bool { return true }
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	h.do(ctx, r.Message)
	return nil
}

// SPEC 4.8: the list has the executions in progress, each with the one that encloses it, and
// is empty in the end.
func TestRunning(t *testing.T) {
	defer timeout.Watch(timeout.Hooks{})()
	err := timeout.Run(t.Context(), func(ctx context.Context) error {
		outer := timeout.FromContext(ctx)
		return timeout.Run(ctx, func(ctx context.Context) error {
			inner := timeout.FromContext(ctx)
			if all := timeout.Running(); !slices.Equal(all, []*timeout.Execution{outer, inner}) {
				t.Errorf("listed: %v", all)
			}
			if inner.Parent() != outer || outer.Parent() != nil || inner.Snapshot().Parent != outer.ID() || outer.Snapshot().Parent != 0 {
				t.Error("which is around which?")
			}
			if inner.ID() <= outer.ID() {
				t.Errorf("ids %d and %d", outer.ID(), inner.ID())
			}
			return nil
		})
	})
	if all := timeout.Running(); err != nil || len(all) != 0 {
		t.Errorf("%v, left: %v", err, all)
	}
}

// SPEC 4.8: an abandoned execution is listed until its function returns, even if nobody watches.
func TestAbandonedIsListed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		began := make(chan *timeout.Execution, 1)
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			began <- timeout.FromContext(ctx)
			time.Sleep(time.Hour)
			return errTool
		}, timeout.Config{Total: time.Second, Grace: time.Second})
		x := <-began
		if all := timeout.Running(); !stopped(t, err).Abandoned || !slices.Equal(all, []*timeout.Execution{x}) || timeout.AbandonedCount() != 1 {
			t.Errorf("%v, listed: %v, abandoned: %d", err, all, timeout.AbandonedCount())
		}
		if s := x.Snapshot(); s.State != timeout.StateAbandoned || s.Elapsed != 2*time.Second {
			t.Errorf("%+v", s)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if all := timeout.Running(); len(all) != 0 || timeout.AbandonedCount() != 0 {
			t.Errorf("listed: %v, abandoned: %d", all, timeout.AbandonedCount())
		}
	})
}

// SPEC 4.8: an execution that was not started is listed no longer than its log handler, even if that returns in the
// instant at which Run waits for it no longer.
func TestNotStartedIsNotListed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		log := slog.New(&handler{do: func(context.Context, string) { time.Sleep(time.Second) }})
		for range 20 {
			var all sync.WaitGroup
			for range 1000 {
				all.Go(func() {
					_ = timeout.Run(ctx, func(context.Context) error { return nil }, timeout.Config{Grace: time.Second}, timeout.WithLogger(log))
				})
			}
			all.Wait()
		}
		synctest.Wait()
		if all := timeout.Running(); len(all) != 0 || timeout.AbandonedCount() != 0 {
			t.Errorf("%d listed, %d abandoned", len(all), timeout.AbandonedCount())
		}
	})
}

// SPEC 4.8: thousands begin, end, are looked at and aborted at once: each is reported once, and nothing is left.
func TestWatchConcurrently(t *testing.T) {
	const workers, each = 8, 100
	var started, finished atomic.Int64
	defer timeout.Watch(timeout.Hooks{
		Started:  func(context.Context, timeout.Snapshot) { started.Add(1) },
		Finished: func(context.Context, timeout.Snapshot) { finished.Add(1) },
	})()
	stop := make(chan struct{})
	var looking, working sync.WaitGroup
	looking.Go(func() {
		for {
			all := timeout.Running()
			if !slices.IsSortedFunc(all, func(a, b *timeout.Execution) int { return int(a.ID()) - int(b.ID()) }) {
				t.Errorf("not in order: %v", all)
			}
			for _, x := range all {
				if _ = fmt.Sprintf("%+v %v", x.Snapshot(), x); x.ID()%7 == 0 {
					x.Abort(errTool)
				}
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	for range workers {
		working.Go(func() {
			for range each {
				stopWatching := timeout.Watch(timeout.Hooks{})
				_ = timeout.Run(context.Background(), func(ctx context.Context) error {
					heartbeat.Beat(ctx)
					runtime.Gosched()
					return nil
				})
				stopWatching()
			}
		})
	}
	working.Wait()
	close(stop)
	looking.Wait()
	if started.Load() != workers*each || finished.Load() != workers*each {
		t.Errorf("%d started, %d finished", started.Load(), finished.Load())
	}
	if all := timeout.Running(); len(all) != 0 {
		t.Errorf("left: %v", all)
	}
}

// A reference to an execution that has ended keeps no other in memory, although both have been listed at once.
func TestOthersAreNotKept(t *testing.T) {
	defer timeout.Watch(timeout.Hooks{})()
	start := heapInUse()
	var first *timeout.Execution
	var release []chan struct{}
	var wg sync.WaitGroup
	for range 40 { // each ends when some have begun after it
		data, begun, end := make([]byte, 1<<20), make(chan struct{}), make(chan struct{})
		wg.Go(func() {
			_ = timeout.Run(context.Background(), func(ctx context.Context) error {
				if first == nil {
					first = timeout.FromContext(ctx)
				}
				close(begun)
				<-end
				data[0] = 1
				return nil
			}, timeout.Config{})
		})
		<-begun
		if release = append(release, end); len(release) > 4 {
			close(release[0])
			release = release[1:]
		}
	}
	for _, end := range release {
		close(end)
	}
	wg.Wait()
	if grown := heapInUse() - start; grown > 16<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	runtime.KeepAlive(first)
}
