package timeout_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A recorder notes which hooks were called, in order.
type recorder struct {
	mu    sync.Mutex
	names []string
	seen  map[string]timeout.Snapshot
}

func (r *recorder) hooks() timeout.Hooks {
	r.seen = make(map[string]timeout.Snapshot)
	note := func(name string) func(context.Context, timeout.Snapshot) {
		return func(ctx context.Context, s timeout.Snapshot) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if heartbeat.FromContext(ctx) == nil {
				name += " without the function's context"
			}
			r.names = append(r.names, name)
			r.seen[name] = s
		}
	}
	return timeout.Hooks{
		Started: note("started"), NearIdle: note("near idle"), Finished: note("finished"),
		Exceeded: note("exceeded"), Stalled: note("stalled"), Abandoned: note("abandoned"), Returned: note("returned"),
	}
}

func (r *recorder) want(t *testing.T, names ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if diff := cmp.Diff(names, r.names); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
}

func (r *recorder) snapshot(name string) timeout.Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[name]
}

// SPEC 4.7: the Snapshot that Exceeded gets stays as it is, so that a hook may hand it to another
// goroutine.
func TestExceededKeepsItsError(t *testing.T) {
	for name, opts := range map[string][]timeout.Option{
		"returns":   {timeout.Config{Idle: time.Second}},
		"abandoned": {timeout.Config{Idle: time.Second, Grace: -1}},
	} {
		bubble(t, func(t *testing.T) {
			var told error
			read := make(chan string, 1)
			err := timeout.Run(t.Context(), func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(time.Second)
				return errTool
			}, append(opts, timeout.WithHooks(timeout.Hooks{Exceeded: func(_ context.Context, s timeout.Snapshot) {
				told = s.Err
				go func() { read <- fmt.Sprintf("%+v", s.Err) }()
			}}))...)
			<-read
			if out := stopped(t, told); out == stopped(t, err) || out.Err != nil || out.Abandoned {
				t.Errorf("%s: Exceeded was told %+v", name, told)
			}
			time.Sleep(time.Hour)
		})
	}
}

// SPEC 4.7: each hook learns name, limits, elapsed, beats and the longest gap.
func TestHooks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var r recorder
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			time.Sleep(9 * time.Second) // close to the limit at 8s
			heartbeat.Beat(ctx)
			time.Sleep(8*time.Second - 1)
			heartbeat.Beat(ctx)
			time.Sleep(time.Minute) // close to it again, and deaf
			return errTool
		}, timeout.Config{Total: time.Hour, Idle: 10 * time.Second, Grace: 5 * time.Second}, timeout.WithName("scan"), timeout.WithHooks(r.hooks()))
		r.want(t, "started", "near idle", "near idle", "exceeded", "abandoned", "finished")
		if got := stopped(t, err).Limits; got != r.snapshot("finished").Limits {
			t.Errorf("the error has the limits %v", got)
		}

		limits := timeout.Config{Total: time.Hour, Idle: 10 * time.Second, Grace: 5 * time.Second}
		const last = 17*time.Second - 1
		id, start := r.snapshot("started").ID, time.Now().Add(-last-15*time.Second)
		snapshot := func(state timeout.State, at time.Duration, err error) timeout.Snapshot {
			return timeout.Snapshot{
				ID: id, Tool: "scan", State: state, Limits: limits, Start: start, Elapsed: at, SinceBeat: at - last,
				LongestGap: max(9*time.Second, at-last), Beats: 2, Err: err,
			}
		}
		soFar, exceeded := *stopped(t, err), stopped(t, r.snapshot("exceeded").Err)
		soFar.Abandoned = false
		if diff := cmp.Diff(soFar, *exceeded); diff != "" {
			t.Errorf("the error that exceeded was told (-want +got):\n%s", diff)
		}
		for name, want := range map[string]timeout.Snapshot{
			"started":   {ID: id, Tool: "scan", State: timeout.StateRunning, Limits: limits, Start: start},
			"near idle": snapshot(timeout.StateNearIdle, last+8*time.Second, nil),
			"exceeded":  snapshot(timeout.StateStopping, last+10*time.Second, exceeded),
			"abandoned": snapshot(timeout.StateAbandoned, last+10*time.Second, err), // when it was stopped, without the grace
			"finished":  snapshot(timeout.StateAbandoned, last+10*time.Second, err),
		} {
			if diff := cmp.Diff(want, r.snapshot(name), cmpopts.IgnoreFields(timeout.Snapshot{}, "Stack"), cmpopts.EquateErrors()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		if !bytes.Contains(r.snapshot("abandoned").Stack, []byte("time.Sleep")) {
			t.Errorf("abandoned without its stack: %s", r.snapshot("abandoned").Stack)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		r.want(t, "started", "near idle", "near idle", "exceeded", "abandoned", "finished", "returned")
		if s := r.snapshot("returned"); s.Err != errTool || s.Elapsed != last+time.Minute {
			t.Errorf("returned: %v after %v", s.Err, s.Elapsed)
		}
	})
}

// 80 % of the limit is not a nanosecond less, and a hold is no gap.
func TestNearIdle(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fn    func(ctx context.Context)
		calls int
	}{
		{"a nanosecond before", func(context.Context) { time.Sleep(8*time.Second - 1) }, 0},
		{"at it", func(context.Context) { time.Sleep(8*time.Second + 1) }, 1},
		{"once per gap", func(context.Context) { time.Sleep(9900 * time.Millisecond) }, 1},
		{"held", func(ctx context.Context) { defer heartbeat.Hold(ctx)(); time.Sleep(time.Hour) }, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				calls := 0
				err := timeout.Run(t.Context(), func(ctx context.Context) error { tc.fn(ctx); return nil },
					timeout.Config{Idle: 10 * time.Second},
					timeout.WithHooks(timeout.Hooks{NearIdle: func(context.Context, timeout.Snapshot) { calls++ }}))
				synctest.Wait()
				if err != nil || calls != tc.calls {
					t.Errorf("%v, called %d times, want %d", err, calls, tc.calls)
				}
			})
		})
	}
}

// The limits in a Snapshot are those that are enforced.
func TestSnapshotLimits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var got timeout.Config
		err := timeout.Run(ctx, func(context.Context) error { return nil }, timeout.Config{Total: time.Minute, Idle: time.Hour},
			timeout.WithHooks(timeout.Hooks{Started: func(_ context.Context, s timeout.Snapshot) { got = s.Limits }}))
		want := timeout.Config{Total: 5 * time.Second, Idle: time.Minute, Grace: timeout.DefaultGrace}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}

// Hooks that panic or dawdle harm neither each other nor the deadline.
func TestBadHooks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		bad := func(context.Context, timeout.Snapshot) { panic("bad hook") }
		var r recorder
		var buf bytes.Buffer
		start := time.Now()
		err := timeout.Run(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return nil },
			timeout.Config{Idle: 10 * time.Second},
			timeout.WithHooks(timeout.Hooks{Started: bad, Finished: bad, NearIdle: func(context.Context, timeout.Snapshot) {
				time.Sleep(time.Hour)
				synctest.Wait()
				panic("and then")
			}}),
			timeout.WithHooks(r.hooks()),
			timeout.WithLogger(slog.New(slog.NewTextHandler(&buf, nil))))
		// The slow one keeps those after it waiting, and Run for a grace.
		if e := stopped(t, err); e.Kind != timeout.KindIdle || !e.Unreported || time.Since(start) != 8*time.Second+timeout.DefaultGrace {
			t.Errorf("%+v after %v", err, time.Since(start))
		}
		r.want(t, "started")
		time.Sleep(2 * time.Hour)
		r.want(t, "started", "near idle", "exceeded", "finished")
		if n := strings.Count(buf.String(), `level=ERROR msg="hook panicked" panic="bad hook"`); n != 2 {
			t.Errorf("%d panics logged:\n%s", n, buf.String())
		}
	})
}

// The log names what happened, at a level that fits, and is silent about success.
func TestLogger(t *testing.T) {
	idle := timeout.Config{Idle: 10 * time.Second}
	for _, tc := range []struct {
		name   string
		config timeout.Config
		fn     func(ctx context.Context, cancel func()) error
		want   []string
	}{
		{"success", idle, func(context.Context, func()) error { return nil }, nil},
		{"the tool's own error", idle, func(context.Context, func()) error { return errTool }, nil},
		{"idle", idle, func(ctx context.Context, _ func()) error { <-ctx.Done(); return errTool }, []string{
			`level=WARN msg="tool is close to its idle limit"`, `level=WARN msg="tool timed out"`, `error.kind=idle`, `error.error="tool failed"`, `stack=`,
		}},
		{"total", timeout.Config{Total: time.Second}, func(ctx context.Context, _ func()) error { <-ctx.Done(); return nil }, []string{
			`level=WARN msg="tool timed out"`, `error.kind=total`, `error.longest_gap=1s`,
		}},
		{"abort", idle, func(ctx context.Context, cancel func()) error { cancel(); <-ctx.Done(); return nil }, []string{
			`level=INFO msg="tool was aborted"`, `error.kind=aborted`,
		}},
		{"abandoned", timeout.Config{Total: time.Second}, func(context.Context, func()) error { time.Sleep(time.Minute); return nil }, []string{
			`level=ERROR msg="tool was abandoned: it did not return when its context was cancelled"`, `error.abandoned=true`, `stack=`,
			`level=WARN msg="abandoned tool returned"`, `execution.elapsed=1m0s`,
		}},
		{"late panic", timeout.Config{Total: time.Second}, func(context.Context, func()) error { time.Sleep(time.Minute); panic("late") }, []string{
			`level=ERROR msg="abandoned tool panicked" tool=scan error="panic: late"`,
		}},
		{"panic", idle, func(context.Context, func()) error { panic("boom") }, []string{`level=ERROR msg="tool panicked" tool=scan error="panic: boom"`}},
		{"corrected limits", timeout.Config{Total: -1, Idle: -1}, func(context.Context, func()) error { return nil }, []string{
			`level=WARN msg="total timeout -1ns is negative; using 0 (no total limit)"`, `level=WARN msg="idle timeout -1ns is negative; using 0 (no idle check)"`,
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var buf bytes.Buffer
				ctx, cancel := context.WithCancel(t.Context())
				_ = timeout.Run(ctx, func(ctx context.Context) error { return tc.fn(ctx, cancel) }, tc.config,
					timeout.WithName("scan"), timeout.WithRecover(), timeout.WithLogger(slog.New(slog.NewTextHandler(&buf, nil))))
				time.Sleep(time.Hour)
				synctest.Wait()
				if len(tc.want) == 0 && buf.Len() > 0 {
					t.Errorf("logged: %s", buf.String())
				}
				for _, want := range tc.want {
					if !strings.Contains(buf.String(), want) || !strings.Contains(buf.String(), "tool=scan") {
						t.Errorf("log has no %s:\n%s", want, buf.String())
					}
				}
				cancel()
			})
		})
	}
}

// The goroutine of a named tool, and those that it starts, can be found in a profile.
func TestGoroutineLabels(t *testing.T) {
	caller := pprof.WithLabels(context.Background(), pprof.Labels("request", "7"))
	err := timeout.Run(caller, func(ctx context.Context) error {
		if v, ok := pprof.Label(ctx, "tool"); !ok || v != "scan" {
			t.Errorf("label in the context: %q", v)
		}
		if v, _ := pprof.Label(ctx, "request"); v != "7" {
			t.Error("the caller's labels are lost")
		}
		done := make(chan struct{})
		defer close(done)
		go func() { <-done }()
		var buf bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&buf, 1); err != nil {
			return err
		}
		if n := strings.Count(buf.String(), `"tool":"scan"`); n != 2 {
			t.Errorf("%d labelled stacks, want the function's and its child's:\n%s", n, buf.String())
		}
		return nil
	}, timeout.WithName("scan"))
	if err != nil {
		t.Error(err)
	}
}

// SPEC 3.24, 4.7: Finished is called exactly once for each Started, even where a hook ends the
// goroutine that it is called on, and so are all other hooks. Run returns.
func TestHooksThatEndTheirGoroutine(t *testing.T) {
	goexit := func(context.Context, timeout.Snapshot) { runtime.Goexit() }
	everything := timeout.Hooks{Started: goexit, Exceeded: goexit, Abandoned: goexit, Finished: goexit, Returned: goexit}
	afterStart := everything
	afterStart.Started = nil
	limits := timeout.Config{Total: time.Second, Grace: time.Second}
	for name, tc := range map[string]struct {
		hooks timeout.Hooks
		takes time.Duration
		want  []string
		is    error
	}{
		"Started":              {timeout.Hooks{Started: goexit}, 0, []string{"started", "finished"}, timeout.ErrGoexit},
		"Exceeded":             {timeout.Hooks{Exceeded: goexit}, 1500 * time.Millisecond, []string{"started", "exceeded", "finished"}, timeout.ErrTotal},
		"Exceeded, abandoned":  {timeout.Hooks{Exceeded: goexit}, 3 * time.Second, []string{"started", "exceeded", "abandoned", "finished", "returned"}, timeout.ErrTotal},
		"Abandoned":            {timeout.Hooks{Abandoned: goexit}, 3 * time.Second, []string{"started", "exceeded", "abandoned", "finished", "returned"}, timeout.ErrTotal},
		"Finished":             {timeout.Hooks{Finished: goexit}, 0, []string{"started", "finished"}, nil},
		"all":                  {everything, 3 * time.Second, []string{"started", "finished"}, timeout.ErrGoexit},
		"all from Exceeded on": {afterStart, 3 * time.Second, []string{"started", "exceeded", "abandoned", "finished", "returned"}, timeout.ErrTotal},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var before, after, watcher recorder
				stop := timeout.Watch(tc.hooks)
				defer stop()
				defer timeout.Watch(watcher.hooks())()
				returned := false
				done := make(chan struct{})
				go func() {
					defer close(done)
					_ = timeout.Run(context.Background(), func(context.Context) error { time.Sleep(tc.takes); return nil }, limits,
						timeout.WithHooks(before.hooks()), timeout.WithHooks(tc.hooks), timeout.WithHooks(after.hooks()))
					returned = true
				}()
				<-done
				if !returned {
					t.Error("a hook has ended Run's goroutine")
				}
				time.Sleep(time.Minute)
				for _, r := range []*recorder{&before, &after, &watcher} {
					r.want(t, tc.want...)
					if s := r.snapshot("finished"); !errors.Is(s.Err, tc.is) {
						t.Errorf("finished with %v, want %v", s.Err, tc.is)
					}
				}
				if all := timeout.Running(); len(all) != 0 || timeout.AbandonedCount() != 0 {
					t.Errorf("left: %v", all)
				}
			})
		})
	}
}
