package timeout_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// watch registers h until the test ends.
func watch(t *testing.T, h timeout.Hooks) {
	t.Helper()
	t.Cleanup(timeout.Watch(h))
}

// A journal notes who was called, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) want(t *testing.T, lines ...string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if diff := cmp.Diff(lines, j.lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	j.lines = nil
}

type spanKey struct{}

// span is what a trace would do.
func span(name string) timeout.Hooks {
	return timeout.Hooks{Context: func(ctx context.Context, _ timeout.Snapshot) context.Context {
		around, _ := ctx.Value(spanKey{}).(string)
		return context.WithValue(ctx, spanKey{}, around+"/"+name)
	}}
}

// The values of the context that a hook has returned are the function's, and those of what
// it calls, of the hooks and of the log.
func TestContextHook(t *testing.T) {
	watch(t, span("w"))
	seen := func(ctx context.Context) string { s, _ := ctx.Value(spanKey{}).(string); return s }
	var finished string
	caller := context.WithValue(t.Context(), spanKey{}, "client")
	log := slog.New(&contextHandler{seen: seen})
	err := timeout.Run(caller, func(ctx context.Context) error {
		if got := seen(ctx); got != "client/w/a/b" {
			t.Errorf("the function has %q", got)
		}
		return timeout.Run(ctx, func(ctx context.Context) error {
			if got := seen(ctx); got != "client/w/a/b/w" {
				t.Errorf("one within has %q", got)
			}
			return nil
		})
	}, timeout.WithHooks(span("a")), timeout.WithHooks(span("b")), timeout.WithName("scan"), timeout.WithLogger(log),
		timeout.WithHooks(timeout.Hooks{Finished: func(ctx context.Context, s timeout.Snapshot) { finished = seen(ctx) }}))
	if err != nil || finished != "client/w/a/b" {
		t.Errorf("%v, Finished has %q", err, finished)
	}
	_ = timeout.Run(caller, func(ctx context.Context) error { <-ctx.Done(); return nil }, timeout.Config{Total: time.Millisecond}, timeout.WithLogger(log))
	if got := log.Handler().(*contextHandler).got; got != "client/w" {
		t.Errorf("the log has %q", got)
	}
}

type contextHandler struct {
	slog.Handler
	seen func(context.Context) string
	got  string
}

func (h *contextHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h *contextHandler) Handle(ctx context.Context, _ slog.Record) error {
	h.got = h.seen(ctx)
	return nil
}

// SPEC 4.8: the list has the executions in progress, each with the one that encloses it, and
// is empty in the end.
func TestRunning(t *testing.T) {
	watch(t, timeout.Hooks{})
	tools := func() (names []string) {
		for _, x := range timeout.Running() {
			names = append(names, x.Snapshot().Tool)
		}
		return names
	}
	err := timeout.Run(t.Context(), func(ctx context.Context) error {
		outer := timeout.FromContext(ctx)
		return timeout.Run(ctx, func(ctx context.Context) error {
			inner := timeout.FromContext(ctx)
			if diff := cmp.Diff([]string{"outer", "inner"}, tools()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if inner.Parent() != outer || outer.Parent() != nil || inner.Snapshot().Parent != outer.ID() || outer.Snapshot().Parent != 0 {
				t.Error("which is around which?")
			}
			if timeout.ByID(inner.ID()) != inner || timeout.ByID(outer.ID()) != outer || inner.ID() <= outer.ID() {
				t.Errorf("ids %d and %d", outer.ID(), inner.ID())
			}
			return nil
		}, timeout.WithName("inner"))
	}, timeout.WithName("outer"))
	if err != nil || len(timeout.Running()) != 0 || timeout.ByID(1<<40) != nil {
		t.Errorf("%v, left: %v", err, tools())
	}
}

// An abandoned execution is listed until its function returns, even if nobody watches.
func TestAbandonedIsListed(t *testing.T) {
	for _, watched := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			if watched {
				defer timeout.Watch(timeout.Hooks{})()
			}
			began := make(chan *timeout.Execution, 1)
			err := timeout.Run(t.Context(), func(ctx context.Context) error {
				began <- timeout.FromContext(ctx)
				time.Sleep(time.Hour)
				return errTool
			}, timeout.Config{Total: time.Second, Grace: time.Second}, timeout.WithName("stuck"))
			x := <-began
			if e := stopped(t, err); !e.Abandoned {
				t.Error(err)
			}
			if all := timeout.Running(); !slices.Equal(all, []*timeout.Execution{x}) || timeout.AbandonedCount() != 1 {
				t.Errorf("listed: %v, abandoned: %d", all, timeout.AbandonedCount())
			}
			s := x.Snapshot()
			if s.State != timeout.StateAbandoned || s.Elapsed != 2*time.Second || stopped(t, s.Err).Kind != timeout.KindTotal {
				t.Errorf("%+v", s)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if all := timeout.Running(); len(all) != 0 || timeout.AbandonedCount() != 0 {
				t.Errorf("listed: %v, abandoned: %d", all, timeout.AbandonedCount())
			}
			if s := x.Snapshot(); s.State != timeout.StateEnded || s.Elapsed != time.Hour || x.Abort(nil) {
				t.Errorf("%+v", s)
			}
		})
	}
}

// Thousands begin, end, are looked at and aborted at once: each is listed once and reported
// once, and nothing is left.
func TestWatchConcurrently(t *testing.T) {
	var mu sync.Mutex
	open := map[uint64]bool{}
	var started, finished, aborted int
	watch(t, timeout.Hooks{
		Started: func(_ context.Context, s timeout.Snapshot) {
			mu.Lock()
			defer mu.Unlock()
			if open[s.ID] {
				t.Errorf("%d twice", s.ID)
			}
			open[s.ID] = true
			started++
		},
		Finished: func(_ context.Context, s timeout.Snapshot) {
			mu.Lock()
			defer mu.Unlock()
			delete(open, s.ID)
			finished++
		},
	})
	const workers, each = 8, 100
	stop, looked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(looked)
		for {
			all := timeout.Running()
			for i, x := range all {
				if i > 0 && all[i-1].ID() >= x.ID() {
					t.Errorf("%d after %d", x.ID(), all[i-1].ID())
				}
				_ = fmt.Sprintf("%+v %v", x.Snapshot(), x)
				if x.ID()%7 == 0 && x.Abort(errTool) {
					mu.Lock()
					aborted++
					mu.Unlock()
				}
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	var wg sync.WaitGroup
	var ended int
	for range workers {
		wg.Go(func() {
			for i := range each {
				stopNested := timeout.Watch(timeout.Hooks{})
				err := timeout.Run(context.Background(), func(ctx context.Context) error {
					heart(ctx)
					if i%5 == 0 {
						return timeout.Run(ctx, func(ctx context.Context) error { runtime.Gosched(); return ctx.Err() })
					}
					runtime.Gosched()
					return nil
				}, timeout.WithName("tool"))
				stopNested()
				if errors.Is(err, timeout.ErrAborted) {
					mu.Lock()
					ended++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	<-looked
	if want := workers * each * 6 / 5; started > want || started < workers*each || started != finished || len(open) != 0 {
		t.Errorf("%d started of %d, %d finished, %d open", started, want, finished, len(open))
	}
	if ended > aborted {
		t.Errorf("%d ended as aborted, %d were", ended, aborted)
	}
	if all := timeout.Running(); len(all) != 0 {
		t.Errorf("left: %v", all)
	}
}

// SPEC 3.15, with somebody who watches: neither the list nor what was in it stays in memory.
func TestNothingIsLeftOfTheList(t *testing.T) {
	watch(t, timeout.Hooks{})
	start := heapInUse()
	for range 10_000 {
		data := make([]byte, 4<<10)
		_ = timeout.Run(context.Background(), func(context.Context) error { data[0] = 1; return nil })
	}
	if grown := heapInUse() - start; grown > 16<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
}

// A reference to an execution that has ended keeps no other in memory, although they have been
// neighbours in the list.
func TestNeighboursAreNotKept(t *testing.T) {
	watch(t, timeout.Hooks{})
	start := heapInUse()
	var first *timeout.Execution
	var release []chan struct{}
	var wg sync.WaitGroup
	for i := range 64 * 40 { // each ends when many have begun after it
		data, begun, end := make([]byte, 1), make(chan struct{}), make(chan struct{})
		if i%64 == 0 { // the ids of these go to the same list
			data = make([]byte, 1<<20)
		}
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
		if release = append(release, end); len(release) > 200 {
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

// A hook that panics is survived, in Context and for a watcher too.
func TestWatcherPanics(t *testing.T) {
	watch(t, timeout.Hooks{
		Context:  func(context.Context, timeout.Snapshot) context.Context { panic("bad context") },
		Started:  func(context.Context, timeout.Snapshot) { panic("bad start") },
		Finished: func(context.Context, timeout.Snapshot) { panic("bad end") },
	})
	var buf bytes.Buffer
	err := timeout.Run(t.Context(), func(context.Context) error { return nil }, timeout.WithLogger(slog.New(slog.NewTextHandler(&buf, nil))))
	if n := strings.Count(buf.String(), `msg="hook panicked"`); err != nil || n != 3 {
		t.Errorf("%v, %d panics logged:\n%s", err, n, buf.String())
	}
}
