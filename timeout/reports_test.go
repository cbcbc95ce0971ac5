package timeout_test

import (
	"context"
	"log/slog"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// attacks are what a hook or a log handler may do beside what it is there for.
var attacks = map[string]func(release chan struct{}, x *timeout.Execution){
	"block":  func(release chan struct{}, _ *timeout.Execution) { <-release },
	"panic":  func(chan struct{}, *timeout.Execution) { panic("attack") },
	"Goexit": func(chan struct{}, *timeout.Execution) { runtime.Goexit() },
	"call back": func(_ chan struct{}, x *timeout.Execution) {
		x.Snapshot()
		x.Stack()
		x.Parent().Snapshot()
		timeout.ByID(x.ID()).Snapshot()
		for _, other := range timeout.Running() {
			other.Snapshot()
		}
		x.BeginClosing()
		timeout.Watch(timeout.Hooks{})()
		if x.Snapshot().Tool != "inner" && within.CompareAndSwap(false, true) { // or a watcher's hook would go on for ever
			_ = timeout.Run(context.Background(), func(context.Context) error { return nil }, timeout.WithName("inner"))
			within.Store(false)
		}
		x.Abort(nil)
	},
}

var within atomic.Bool

// A happening makes an execution call all hooks: it is silent for long, reaches its idle limit or its
// total, and returns late or in time.
var happenings = map[string]struct {
	limits timeout.Config
	fn     func(context.Context) error
	opts   []timeout.Option
	over   time.Duration // when the function is stopped or returns
	deaf   bool          // it does not return within the grace
}{
	"returns":     {timeout.Config{Idle: 10 * time.Second}, func(context.Context) error { time.Sleep(3 * time.Second); return nil }, nil, 3 * time.Second, false},
	"nearly idle": {timeout.Config{Idle: 10 * time.Second, Total: time.Hour}, func(context.Context) error { time.Sleep(9 * time.Second); return nil }, nil, 9 * time.Second, false},
	"idle":        {timeout.Config{Idle: 10 * time.Second}, func(ctx context.Context) error { <-ctx.Done(); return nil }, nil, 10 * time.Second, false},
	"total":       {timeout.Config{Total: 10 * time.Second, Reserve: time.Second}, func(ctx context.Context) error { <-ctx.Done(); return errTool }, nil, 10 * time.Second, false},
	"deaf":        {timeout.Config{Total: 10 * time.Second}, func(ctx context.Context) error { time.Sleep(time.Hour); return errTool }, nil, 10 * time.Second, true},
	"late panic":  {timeout.Config{Total: 10 * time.Second}, func(ctx context.Context) error { time.Sleep(time.Hour); panic("late") }, nil, 10 * time.Second, true},
	"panic":       {timeout.Config{Total: 10 * time.Second}, func(ctx context.Context) error { panic("at once") }, []timeout.Option{timeout.WithRecover()}, 0, false},
	"observed":    {timeout.Config{Total: 4 * time.Second, Idle: 2 * time.Second}, func(ctx context.Context) error { time.Sleep(10 * time.Second); return nil }, []timeout.Option{timeout.WithObserveOnly()}, 10 * time.Second, false},
	"corrected":   {timeout.Config{Total: -1, Idle: 10 * time.Second}, func(context.Context) error { return nil }, nil, 0, false},
	"not started": {timeout.Config{Total: time.Second}, func(context.Context) error { return nil }, []timeout.Option{timeout.Need(time.Hour)}, 0, false},
	"beats a bit": {timeout.Config{Idle: 10 * time.Second, Total: 20 * time.Second}, func(ctx context.Context) error {
		time.Sleep(9 * time.Second)
		heartbeat.Beat(ctx)
		<-ctx.Done()
		return nil
	}, nil, 19 * time.Second, false},
}

// SPEC 3.24: whatever a hook or a log handler does, limits fire when they are due, the function's context
// is cancelled then, Run returns within the grace after what it waits for, another execution goes on, and
// nothing is left when the hook has returned.
func TestHooksAndHandlersThatAttack(t *testing.T) {
	const grace = 2 * time.Second
	type place struct {
		name string
		opts func(attack func(context.Context)) (opts []timeout.Option, undo func())
	}
	var places []place
	hooks := reflect.TypeFor[timeout.Hooks]()
	for i := range hooks.NumField() {
		hook := func(attack func(context.Context)) (h timeout.Hooks) {
			f := reflect.ValueOf(&h).Elem().Field(i)
			f.Set(reflect.MakeFunc(f.Type(), func(args []reflect.Value) []reflect.Value {
				attack(args[0].Interface().(context.Context))
				return slices.Repeat([]reflect.Value{reflect.Zero(reflect.TypeFor[context.Context]())}, f.Type().NumOut())
			}))
			return h
		}
		places = append(places,
			place{"WithHooks." + hooks.Field(i).Name, func(attack func(context.Context)) ([]timeout.Option, func()) {
				return []timeout.Option{timeout.WithHooks(hook(attack))}, func() {}
			}},
			place{"Watch." + hooks.Field(i).Name, func(attack func(context.Context)) ([]timeout.Option, func()) {
				return nil, timeout.Watch(hook(attack))
			}},
		)
	}
	places = append(places, place{"WithLogger", func(attack func(context.Context)) ([]timeout.Option, func()) {
		return []timeout.Option{timeout.WithLogger(slog.New(&attacker{attack: attack}))}, func() {}
	}})
	for _, place := range places {
		for how, attack := range attacks {
			for what, does := range happenings {
				t.Run(place.name+"/"+how+"/"+what, func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						release := make(chan struct{})
						var x atomic.Pointer[timeout.Execution]
						opts, undo := place.opts(func(ctx context.Context) {
							own := timeout.FromContext(ctx)
							if own == nil {
								own = x.Load() // the hook Context
							}
							attack(release, own)
						})
						defer undo()
						limits, over := does.limits, does.over
						if how == "block" && (strings.HasSuffix(place.name, ".Context") || strings.HasSuffix(place.name, ".Started")) {
							if what == "observed" {
								return // no limit ends it, and the function waits
							}
							over = max(limits.Idle, limits.Total)
						}
						limits.Grace = grace
						begun := time.Now()
						var cancelled atomic.Int64
						_ = timeout.Run(t.Context(), func(ctx context.Context) error {
							x.Store(timeout.FromContext(ctx))
							context.AfterFunc(ctx, func() { cancelled.Store(int64(time.Since(begun))) })
							return does.fn(ctx)
						}, append(append([]timeout.Option{limits}, does.opts...), opts...)...)
						bound := over + grace
						if does.deaf {
							bound += grace
						}
						if took := time.Since(begun); took > bound {
							t.Errorf("Run has returned after %v, the bound is %v", took, bound)
						}
						synctest.Wait()
						if at := time.Duration(cancelled.Load()); at > over {
							t.Errorf("cancelled after %v, want %v", at, over)
						}
						undo()
						if how == "block" { // others go on
							again := time.Now()
							if err := timeout.Run(t.Context(), func(context.Context) error { return nil }); err != nil || time.Since(again) > timeout.DefaultGrace {
								t.Errorf("another execution: %v after %v", err, time.Since(again))
							}
						}
						close(release)
						time.Sleep(3 * time.Hour)
						if n, all := timeout.AbandonedCount(), timeout.Running(); n != 0 || len(all) != 0 {
							t.Errorf("left: %d, %v", n, all)
						}
					})
				})
			}
		}
	}
}

// An attacker is a handler that does so with each record.
type attacker struct {
	slog.Handler
	attack func(context.Context)
}

func (h *attacker) Enabled(context.Context, slog.Level) bool        { return true }
func (h *attacker) Handle(ctx context.Context, _ slog.Record) error { h.attack(ctx); return nil }
func (h *attacker) WithAttrs([]slog.Attr) slog.Handler              { return h }
func (h *attacker) WithGroup(string) slog.Handler                   { return h }

// SPEC 3.24: Run says where it has not waited for a hook any longer, and the rest is delivered, in order,
// when the hook has returned.
func TestUnreported(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var r recorder
		release := make(chan struct{})
		stuck := timeout.Hooks{Exceeded: func(context.Context, timeout.Snapshot) { <-release }}
		err := timeout.Run(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return errTool },
			timeout.Config{Total: time.Second, Grace: time.Second}, timeout.WithHooks(r.hooks()), timeout.WithHooks(stuck))
		e := stopped(t, err)
		if !e.Unreported || e.Abandoned || e.Err != errTool {
			t.Errorf("%+v", err)
		}
		if all := timeout.Running(); timeout.AbandonedCount() != 1 || len(all) != 1 || all[0].Snapshot().State != timeout.StateEnded {
			t.Errorf("%d left, %v", timeout.AbandonedCount(), all)
		}
		r.want(t, "started", "exceeded")
		close(release)
		time.Sleep(time.Minute)
		r.want(t, "started", "exceeded", "finished")
		if got := stopped(t, r.snapshot("finished").Err); got.Err != errTool || got.Kind != e.Kind {
			t.Errorf("finished with %+v", got)
		}
		if all := timeout.Running(); timeout.AbandonedCount() != 0 || len(all) != 0 {
			t.Errorf("%d left, %v", timeout.AbandonedCount(), all)
		}
	})
}

// The function of an execution that a hook has kept until it was abandoned is not called.
func TestHookThatKeepsTheFunction(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		for _, h := range []timeout.Hooks{
			{Started: func(context.Context, timeout.Snapshot) { <-release }},
			{Context: func(ctx context.Context, _ timeout.Snapshot) context.Context { <-release; return ctx }},
		} {
			begun := time.Now()
			err := timeout.Run(t.Context(), func(context.Context) error { t.Error("called"); return nil },
				timeout.Config{Total: time.Second, Grace: time.Second}, timeout.WithHooks(h))
			if e := stopped(t, err); !e.Abandoned || !e.Unreported || time.Since(begun) != 2*time.Second {
				t.Errorf("%+v after %v", err, time.Since(begun))
			}
		}
		close(release)
		time.Sleep(time.Minute)
	})
}

// Reports of moments do not pile up behind a hook that blocks, and the log says how many were left out.
func TestReportsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		var mu sync.Mutex
		calls := 0
		var log records
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			for range 1000 {
				time.Sleep(9 * time.Second)
				heartbeat.Beat(ctx)
			}
			close(release)
			return nil
		}, timeout.Config{Idle: 10 * time.Second}, timeout.WithLogger(slog.New(&log)), timeout.WithHooks(timeout.Hooks{
			NearIdle: func(context.Context, timeout.Snapshot) {
				mu.Lock()
				defer mu.Unlock()
				if calls++; calls == 1 {
					<-release
				}
			},
		}))
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if err != nil || calls < 2 || calls > 100 || log.count("hooks or the log handler were too slow for all reports") != 1 {
			t.Errorf("%v, %d calls, %v", err, calls, log.count("hooks or the log handler were too slow for all reports"))
		}
	})
}

type records struct {
	attacker
	mu       sync.Mutex
	messages []string
}

func (r *records) Handle(_ context.Context, rec slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, rec.Message)
	return nil
}

func (r *records) count(msg string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.messages {
		if m == msg {
			n++
		}
	}
	return n
}

// A clock that panics once the function runs ends the execution, and not the process.
func TestClockThatPanics(t *testing.T) {
	c := &brokenClock{Clock: clock.NewMock()}
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		c.broken.Store(true)
		heartbeat.Hold(ctx)()
		heartbeat.Beat(ctx)
		<-ctx.Done()
		return nil
	}, timeout.Config{Total: time.Hour, Grace: time.Millisecond}, timeout.WithClock(c), timeout.WithHooks(timeout.Hooks{
		Started: func(ctx context.Context, _ timeout.Snapshot) {
			x := timeout.FromContext(ctx)
			time.AfterFunc(10*time.Millisecond, func() { x.Snapshot(); x.Abort(nil) })
		},
	}))
	if err == nil {
		t.Error("not stopped")
	}
}

type brokenClock struct {
	timeout.Clock
	broken atomic.Bool
}

func (c *brokenClock) Now() time.Time {
	if c.broken.Load() {
		panic("broken")
	}
	return c.Clock.Now()
}
