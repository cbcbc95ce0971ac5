package progress_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 7.9: overlapping waits leave no message behind, whichever ends first.
func TestAwaitsOverlap(t *testing.T) {
	for _, tc := range []struct {
		name          string
		first, second time.Duration // instants of their ends; the second begins at 1 s
		between, last string
	}{
		{"the first ends first", 2 * s, 3 * s, "Waiting for approval of second (up to 30s)", "working"},
		{"the second ends first", 3 * s, 2 * s, "Waiting for approval of first (up to 30s)", "working"},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			err := timeout.Run(t.Context(), func(ctx context.Context) error {
				newest := func() string {
					u, _ := heartbeat.FromContext(ctx).Detail().(*progress.Update)
					if u == nil {
						return ""
					}
					return u.Message
				}
				progress.Report(ctx, progress.Update{Message: "working"})
				go func() { _, _ = progress.Await(ctx, "first", progress.Wait{}, person(tc.first)) }()
				time.Sleep(1 * s)
				go func() { _, _ = progress.Await(ctx, "second", progress.Wait{}, person(tc.second-1*s)) }()
				time.Sleep(1500 * time.Millisecond)
				if got := newest(); got != tc.between {
					t.Errorf("while one waits: %q", got)
				}
				time.Sleep(1 * s)
				if got := newest(); got != tc.last {
					t.Errorf("when none waits: %q", got)
				}
				return nil
			}, timeout.Config{})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// hidden is a context that has a deadline and does not show it.
type hidden struct{ context.Context }

func (hidden) Deadline() (time.Time, bool) { return time.Time{}, false }

// SPEC 7.9: a wait that ends with its caller is no expiry.
func TestAwaitCutShort(t *testing.T) {
	for _, tc := range []struct {
		name string
		ctx  func(context.Context) (context.Context, context.CancelFunc)
		opts progress.Wait
	}{
		{"over from the start, no limit", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithDeadline(ctx, time.Now().Add(-1))
		}, progress.Wait{Limit: -1, ProgressLimit: -1}},
		{"a deadline that is not shown", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithTimeout(ctx, s)
			return hidden{ctx}, cancel
		}, progress.Wait{}},
		{"a deadline that is not shown, no limit", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithTimeout(ctx, s)
			return hidden{ctx}, cancel
		}, progress.Wait{Limit: -1, ProgressLimit: -1}},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			ctx, cancel := tc.ctx(t.Context())
			defer cancel()
			_, err := progress.Await(ctx, "rm", tc.opts, person(time.Minute))
			if errors.Is(err, progress.ErrNoAnswer) || !errors.Is(err, timeout.ErrTotal) {
				t.Errorf("%v", err)
			}
		})
	}
}

// firstIsLate is a clock whose first timer, that of the first execution on it, is late.
type firstIsLate struct {
	clock.Clock
	timers atomic.Int32
}

func (c *firstIsLate) AfterFunc(d time.Duration, f func()) *clock.Timer {
	if c.timers.Add(1) == 1 {
		d += time.Hour
	}
	return c.Clock.AfterFunc(d, f)
}

// shown is a context that shows a deadline but does not end at it.
type shown struct {
	context.Context
	deadline time.Time
}

func (c shown) Deadline() (time.Time, bool) { return c.deadline, true }

// SPEC 3.17, 3.18, 7.9: a wait that ends together with its tool is no expiry. It is the tool's last detail, even if the
// tool's own timer is late, and says for how long it had waited then and could have, however late it is read. The
// enclosing execution keeps its own detail.
func TestAwaitIsStopped(t *testing.T) {
	deaf := func(context.Context) (string, error) { time.Sleep(time.Minute); return "", nil }
	late := func() timeout.Option { return timeout.WithClock(&firstIsLate{Clock: clock.New()}) }
	for _, tc := range []struct {
		name     string
		opts     func() []timeout.Option // of the tool, which waits after a second
		deadline time.Duration           // of its context
		only     bool                    // shown
		abort    time.Duration
		wait     progress.Wait
		ask      func(context.Context) (string, error)
		kind     timeout.Kind
		after    time.Duration
		last     string
	}{
		{name: "total", opts: func() []timeout.Option { return []timeout.Option{timeout.Config{Total: 12500 * time.Millisecond}} },
			kind: timeout.ErrTotal, after: 12500 * time.Millisecond, last: "11s so far, 19s left"},
		{name: "total, and it does not return", opts: func() []timeout.Option { return []timeout.Option{timeout.Config{Total: 12500 * time.Millisecond}} },
			ask: deaf, kind: timeout.ErrTotal, after: 13500 * time.Millisecond, last: "11s so far, 19s left"},
		{name: "total, right before the wait ends", opts: func() []timeout.Option { return []timeout.Option{timeout.Config{Total: 31*s - 1}} },
			kind: timeout.ErrTotal, after: 31*s - 1, last: "29s so far, 1s left"},
		{name: "abort", opts: func() []timeout.Option { return nil }, abort: 7 * s, kind: timeout.ErrAborted, after: 7 * s, last: "6s so far, 24s left"},
		{name: "observed", opts: func() []timeout.Option {
			return []timeout.Option{timeout.Config{Idle: 10 * s}, timeout.WithObserveOnly()}
		},
			deadline: 2 * s, kind: timeout.ErrTotal, after: 2 * s, last: "1s so far, 29s left"},
		{name: "a late timer", opts: func() []timeout.Option { return []timeout.Option{timeout.Config{Total: 5 * s}, late()} },
			wait: progress.Wait{Limit: 4 * s}, kind: timeout.ErrTotal, after: 5 * s, last: "4s so far, 0s left"},
		{name: "a late timer, observed", opts: func() []timeout.Option {
			return []timeout.Option{timeout.Config{Total: time.Minute}, timeout.WithObserveOnly(), late()}
		}, deadline: 5 * s, only: true, wait: progress.Wait{Limit: 4 * s}, kind: timeout.ErrTotal, after: 5 * s, last: "4s so far, 0s left"},
	} {
		for range 20 { // the order of the timers is random
			bubble(t, tc.name, func(t *testing.T) {
				ctx, abort := context.WithCancel(t.Context())
				defer abort()
				switch {
				case tc.only:
					ctx = shown{ctx, time.Now().Add(tc.deadline)}
				case tc.deadline > 0:
					limited, cancel := context.WithTimeout(ctx, tc.deadline)
					defer cancel()
					ctx = limited
				}
				if tc.abort > 0 {
					time.AfterFunc(tc.abort, abort)
				}
				if tc.ask == nil {
					tc.ask = person(time.Hour)
				}
				start := time.Now()
				var stop *timeout.Error
				tool := func(ctx context.Context) {
					err := timeout.Run(ctx, func(ctx context.Context) error {
						time.Sleep(s)
						_, err := progress.Await(hidden{ctx}, "rm", tc.wait, tc.ask)
						return err
					}, tc.opts()...)
					if took := time.Since(start); !errors.As(err, &stop) || stop.Kind != tc.kind || took != tc.after {
						t.Errorf("%v after %v", err, took)
					}
				}
				if tc.only {
					tool(ctx)
				} else {
					_ = timeout.Run(ctx, func(ctx context.Context) error {
						progress.Report(ctx, progress.Update{Message: "working"})
						tool(ctx)
						if u, _ := heartbeat.FromContext(ctx).Detail().(*progress.Update); ctx.Err() == nil && (u == nil || u.Message != "working") {
							t.Errorf("enclosing: %v", u)
						}
						return nil
					}, timeout.Config{})
				}
				time.Sleep(time.Hour)
				if stop == nil {
					return
				}
				if got, want := progress.UpdateOf(stop.Detail).String(), "Waiting for approval of rm ("+tc.last+")"; got != want {
					t.Errorf("last: %q, want %q", got, want)
				}
			})
		}
	}
}

// SPEC 7.2, 7.9: an update that is pending when a wait begins is sent before the result even if the
// tool is stopped during the wait. The wait's message is not.
func TestPendingBeforeAnAwaitThatIsStopped(t *testing.T) {
	const e = 1e-6
	waiting := func(what, since, left string) string {
		return "Waiting for approval of " + what + " (" + since + " so far, " + left + " left)"
	}
	for _, tc := range []struct {
		name string
		tool func(ctx context.Context)
		want []note
	}{
		{"one wait", func(ctx context.Context) {
			_, _ = progress.Await(hidden{ctx}, "rm", progress.Wait{}, person(time.Hour))
		}, []note{{2 * s, 4, 0, waiting("rm", "2s", "1m58s")}, {5 * s, 4 + e, 0, "b"}}},
		{"one that goes on", func(ctx context.Context) {
			go func() {
				_, _ = progress.Await(hidden{ctx}, "rm", progress.Wait{}, func(context.Context) (int, error) { time.Sleep(time.Minute); return 0, nil })
			}()
			<-ctx.Done()
		}, []note{{2 * s, 4, 0, waiting("rm", "2s", "1m58s")}, {5 * s, 4 + e, 0, "b"}}},
		{"two", func(ctx context.Context) {
			go func() { _, _ = progress.Await(hidden{ctx}, "first", progress.Wait{}, person(time.Hour)) }()
			time.Sleep(s)
			_, _ = progress.Await(hidden{ctx}, "second", progress.Wait{}, person(time.Hour))
		}, []note{{2 * s, 4, 0, waiting("second", "1s", "1m59s")}, {5 * s, 4 + e, 0, "b"}}},
		{"a newer update during the wait", func(ctx context.Context) {
			go func() { _, _ = progress.Await(hidden{ctx}, "rm", progress.Wait{}, person(time.Hour)) }()
			time.Sleep(3 * s)
			progress.Report(ctx, progress.Update{Progress: 5, Message: "c"})
			<-ctx.Done()
		}, []note{{2 * s, 4, 0, waiting("rm", "2s", "1m58s")}, {4 * s, 5, 0, "c"}}},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			c := &client{start: time.Now()}
			stop := func() {}
			err := timeout.Run(t.Context(), func(ctx context.Context) error {
				report(ctx, progress.Update{Progress: 3, Message: "a"})
				report(ctx, progress.Update{Progress: 4, Message: "b"})
				tc.tool(ctx)
				return nil
			}, timeout.Config{Total: 5*s - tick}, timeout.WithHooks(timeout.Hooks{Started: func(ctx context.Context, _ timeout.Snapshot) {
				stop = progress.Start(ctx, "t", 2*s, c.notify)
			}}))
			time.Sleep(tick)
			stop()
			if !errors.Is(err, timeout.ErrTotal) {
				t.Error(err)
			}
			time.Sleep(time.Hour) // lets abandoned goroutines end
			c.want(t, append([]note{{0, 3, 0, "a"}}, tc.want...)...)
		})
	}
}
