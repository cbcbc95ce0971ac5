package timeout_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
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
