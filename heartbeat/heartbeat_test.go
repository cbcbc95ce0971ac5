package heartbeat_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
)

var errTool = errors.New("tool failed")

// execution runs fn in a bubble under the given idle limit.
func execution(t *testing.T, idle time.Duration, fn func(t *testing.T, ctx context.Context)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			fn(t, ctx)
			return ctx.Err()
		}, timeout.Config{Idle: idle})
		if err != nil {
			t.Error(err)
		}
	})
}

// SPEC 4.1: outside an execution every call does nothing.
func TestOutsideAnExecution(t *testing.T) {
	ctx := context.Background()
	heartbeat.Beat(ctx)
	heartbeat.BeatWith(ctx, "detail")
	release := heartbeat.Hold(ctx)
	release()
	release()
	stop := heartbeat.Relay(ctx, 1, func(context.Context, any) {
		t.Error("the sink was called")
	})
	stop()
	stop()
	if err := heartbeat.Keep(ctx, 1, func(context.Context) error { return errTool }); err != errTool {
		t.Errorf("Keep gave %v", err)
	}
	if _, err := io.Copy(heartbeat.Writer(ctx, io.Discard), heartbeat.Reader(ctx, strings.NewReader("x"))); err != nil {
		t.Error(err)
	}
	if d := heartbeat.Interval(ctx); d != 10*time.Second {
		t.Errorf("interval %v", d)
	}
	m := heartbeat.FromContext(ctx)
	m.Beat()
	if m != nil || m.Count() != 0 {
		t.Errorf("monitor %v, %d", m, m.Count())
	}
}

func TestMonitor(t *testing.T) {
	execution(t, time.Minute, func(t *testing.T, ctx context.Context) {
		m, start := heartbeat.FromContext(ctx), time.Now()
		if m.Count() != 0 || !pulse.Of(ctx).LastTime().Equal(start) {
			t.Errorf("at the start: %d, %v", m.Count(), pulse.Of(ctx).LastTime())
		}
		for i := range 100 {
			time.Sleep(time.Second)
			if i%2 == 0 {
				m.Beat()
			} else {
				heartbeat.Beat(ctx)
			}
			if m.Count() != uint64(i+1) || !pulse.Of(ctx).LastTime().Equal(time.Now()) {
				t.Fatalf("after %v: %d, %v", time.Since(start), m.Count(), pulse.Of(ctx).LastTime())
			}
		}
		child, cancel := context.WithCancel(context.WithValue(ctx, errTool, 1))
		defer cancel()
		if heartbeat.FromContext(child) != m {
			t.Error("a derived context has another monitor")
		}
	})
}

// Concurrent beats on a real clock never set the stamp back.
func TestConcurrentBeats(t *testing.T) {
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				var last time.Time
				for range 20_000 {
					heartbeat.Beat(ctx)
					now := pulse.Of(ctx).LastTime()
					if now.Before(last) {
						t.Errorf("last beat went back from %v to %v", last, now)
						return
					}
					last = now
				}
			})
		}
		wg.Wait()
		return nil
	}, timeout.Config{Idle: time.Minute})
	if err != nil {
		t.Error(err)
	}
}

// SPEC 2.11: the interval is 10 s, or half of the smallest idle limit.
func TestInterval(t *testing.T) {
	for _, tc := range []struct {
		name        string
		outer, idle time.Duration
		want        time.Duration
	}{
		{"no idle check", 0, 0, 10 * time.Second},
		{"default", 0, 120 * time.Second, 10 * time.Second},
		{"at the turn", 0, 20 * time.Second, 10 * time.Second},
		{"below it", 0, 20*time.Second - 2, 10*time.Second - 1},
		{"short", 0, 3 * time.Second, 1500 * time.Millisecond},
		{"a nanosecond", 0, 1, 1},
		{"the maximum", 0, math.MaxInt64, 10 * time.Second},
		{"outer is shorter", 4 * time.Second, time.Minute, 2 * time.Second},
		{"inner is shorter", time.Minute, 4 * time.Second, 2 * time.Second},
		{"outer only", 4 * time.Second, 0, 2 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_ = timeout.Run(t.Context(), func(ctx context.Context) error {
					return timeout.Run(ctx, func(ctx context.Context) error {
						if got := heartbeat.Interval(ctx); got != tc.want {
							t.Errorf("%v, want %v", got, tc.want)
						}
						return nil
					}, timeout.Config{Idle: tc.idle})
				}, timeout.Config{Idle: tc.outer})
			})
		})
	}
}

// SPEC 2.11: who beats for a supervisor of the process beats often enough for it, and not for that of another process.
func TestIntervalOfSupervisor(t *testing.T) {
	for _, tc := range []struct {
		name, socket, usec, pid string
		want                    time.Duration
	}{
		{"none", "", "6000000", "", 10 * time.Second},
		{"without a watchdog", "/run/notify", "", "", 10 * time.Second},
		{"short", "/run/notify", "6000000", "", 3 * time.Second},
		{"long", "/run/notify", "60000000", "", 10 * time.Second},
		{"of another process", "/run/notify", "6000000", "1", 10 * time.Second},
		{"no number", "/run/notify", "6s", "", 10 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for name, value := range map[string]string{"NOTIFY_SOCKET": tc.socket, "WATCHDOG_USEC": tc.usec, "WATCHDOG_PID": tc.pid} {
				t.Setenv(name, value)
				if value == "" {
					_ = os.Unsetenv(name)
				}
			}
			if got := heartbeat.Interval(t.Context()); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

// SPEC 4.3, 2.13: Keep beats while fn runs.
func TestKeep(t *testing.T) {
	for _, tc := range []struct {
		name               string
		idle, every, sleep time.Duration
		beats              uint64
	}{
		{"the default", time.Minute, 0, 25 * time.Second, 3}, // at once, 10s, 20s
		{"the default fits a short idle limit", 4 * time.Second, 0, 25 * time.Second, 13},
		{"given", time.Minute, 7 * time.Second, 22 * time.Second, 4},
		{"a negative interval means none", 0, -1, 22 * time.Second, 0},
		{"returns before the first interval", time.Minute, 7 * time.Second, time.Second, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			execution(t, tc.idle, func(t *testing.T, ctx context.Context) {
				time.Sleep(tc.idle - 1)
				err := heartbeat.Keep(ctx, tc.every, func(inner context.Context) error {
					if inner != ctx {
						t.Error("fn has another context")
					}
					time.Sleep(tc.sleep)
					return errTool
				})
				if m := heartbeat.FromContext(ctx); err != errTool || m.Count() != tc.beats {
					t.Errorf("%v, %d beats, want %d", err, m.Count(), tc.beats)
				}
				time.Sleep(tc.idle / 2) // no beat comes after it has returned
				if m := heartbeat.FromContext(ctx); m.Count() != tc.beats {
					t.Errorf("%d beats after the return", m.Count()-tc.beats)
				}
			})
		})
	}
}

// SPEC 4.3: the beats stop however fn ends, and when the context is cancelled.
func TestKeepStops(t *testing.T) {
	for name, fn := range map[string]func(context.Context) error{
		"panic":  func(context.Context) error { panic("boom") },
		"goexit": func(context.Context) error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			execution(t, 0, func(t *testing.T, ctx context.Context) {
				done := make(chan any)
				go func() {
					defer func() { done <- recover() }()
					_ = heartbeat.Keep(ctx, time.Second, fn)
				}()
				<-done
				time.Sleep(time.Minute)
				if n := heartbeat.FromContext(ctx).Count(); n != 1 {
					t.Errorf("%d beats, want 1", n)
				}
			})
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		execution(t, 0, func(t *testing.T, ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
			defer cancel()
			_ = heartbeat.Keep(ctx, time.Minute, func(context.Context) error { time.Sleep(time.Hour); return nil })
			if n := heartbeat.FromContext(ctx).Count(); n != 2 {
				t.Errorf("%d beats, want 2: a cancelled tool is not kept alive", n)
			}
		})
	})
}

// SPEC 4.4: transfers of at least one byte beat, and only those.
func TestReaderWriter(t *testing.T) {
	execution(t, 0, func(t *testing.T, ctx context.Context) {
		m := heartbeat.FromContext(ctx)
		beats := func(f func()) uint64 { before := m.Count(); f(); return m.Count() - before }
		buf := make([]byte, 4)
		r := func(r io.Reader) func() {
			return func() { _, _ = heartbeat.Reader(ctx, r).Read(buf) }
		}
		w := func(w io.Writer, n int) func() {
			return func() { _, _ = heartbeat.Writer(ctx, w).Write(buf[:n]) }
		}
		for _, tc := range []struct {
			name string
			do   func()
			want uint64
		}{
			{"read", r(strings.NewReader("data")), 1},
			{"read of nothing", r(strings.NewReader("")), 0},
			{"read of data and error", r(iotest.DataErrReader(strings.NewReader("x"))), 1},
			{"failed read", r(iotest.ErrReader(errTool)), 0},
			{"write", w(io.Discard, 4), 1},
			{"write of nothing", w(io.Discard, 0), 0},
			{"cut write", w(&shortWriter{}, 4), 1},
			{"failed write", w(&failingWriter{}, 4), 0},
		} {
			if got := beats(tc.do); got != tc.want {
				t.Errorf("%s: %d beats, want %d", tc.name, got, tc.want)
			}
		}
		// The data passes through unchanged.
		var out bytes.Buffer
		in := strings.Repeat("0123456789", 10_000)
		if n, err := io.Copy(heartbeat.Writer(ctx, &out), iotest.OneByteReader(heartbeat.Reader(ctx, strings.NewReader(in)))); n != int64(len(in)) || err != nil || out.String() != in {
			t.Errorf("%d bytes, %v", n, err)
		}
		if err := iotest.TestReader(heartbeat.Reader(ctx, strings.NewReader(in[:100])), []byte(in[:100])); err != nil {
			t.Error(err)
		}
	})
}

type shortWriter struct{}

func (*shortWriter) Write(p []byte) (int, error) { return 1, io.ErrShortWrite }

type failingWriter struct{}

func (*failingWriter) Write(p []byte) (int, error) { return 0, errTool }

// A delivery is one call of a sink.
type delivery struct {
	At     time.Duration // time since the start of the log
	Detail any
}

// A log is a sink that records its calls.
type log struct {
	start time.Time
	mu    sync.Mutex
	calls []delivery
}

func newLog() *log { return &log{start: time.Now()} }

func (l *log) beat(_ context.Context, detail any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, delivery{time.Since(l.start), detail})
}

func (l *log) want(t *testing.T, want ...delivery) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if diff := cmp.Diff(want, l.calls); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
}

func (l *log) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.calls)
}

// SPEC 4.5: a relay calls its sink at most once per interval, with the newest detail.
func TestRelay(t *testing.T) {
	const s = time.Second
	for _, tc := range []struct {
		name string
		fn   func(t *testing.T, ctx context.Context)
	}{
		{"first at once, then the newest when the interval ends", func(t *testing.T, ctx context.Context) {
			sink := newLog()
			defer heartbeat.Relay(ctx, 10*s, sink.beat)()
			time.Sleep(3 * s)
			heartbeat.BeatWith(ctx, "a")
			synctest.Wait()
			for _, detail := range []string{"b", "c"} {
				time.Sleep(s)
				heartbeat.BeatWith(ctx, detail)
			}
			time.Sleep(s)
			heartbeat.Beat(ctx)
			time.Sleep(40 * s) // silence
			heartbeat.Beat(ctx)
			synctest.Wait()
			sink.want(t, delivery{3 * s, "a"}, delivery{13 * s, "c"}, delivery{46 * s, "c"})
		}},
		{"beats of a nested execution, details included", func(t *testing.T, ctx context.Context) {
			sink := newLog()
			defer heartbeat.Relay(ctx, 10*s, sink.beat)()
			_ = timeout.Run(ctx, func(ctx context.Context) error {
				synctest.Wait()
				time.Sleep(s)
				heartbeat.BeatWith(ctx, "inner")
				time.Sleep(20 * s)
				return nil
			})
			sink.want(t, delivery{0, nil}, delivery{10 * s, "inner"})
		}},
		{"a burst that is absorbed", func(t *testing.T, ctx context.Context) {
			for range 10_000 {
				heartbeat.Beat(ctx)
			}
			sink := newLog()
			defer heartbeat.Relay(ctx, 10*s, sink.beat)()
			heartbeat.Beat(ctx) // absorbed: delivered when the burst ends
			time.Sleep(s)
			if n := sink.len(); n != 1 {
				t.Errorf("%d deliveries, want 1", n)
			}
			for range 10_000 {
				heartbeat.BeatWith(ctx, "newest")
			}
			time.Sleep(10 * s)
			if n := sink.len(); n != 2 {
				t.Errorf("%d deliveries, want 2", n)
			}
		}},
		{"stopped", func(t *testing.T, ctx context.Context) {
			sink := newLog()
			stop := heartbeat.Relay(ctx, 10*s, sink.beat)
			for i := range 10 {
				heartbeat.BeatWith(ctx, i)
				synctest.Wait()
				time.Sleep(s / 10)
			}
			stop()
			stop()
			want := []delivery{{0, 0}, {s, 9}}
			sink.want(t, want...) // at the return of stop
			heartbeat.BeatWith(ctx, "after")
			time.Sleep(time.Hour)
			sink.want(t, want...)
		}},
		{"stopped with nothing but a beat left", func(t *testing.T, ctx context.Context) {
			heartbeat.BeatWith(ctx, "before the relay")
			sink := newLog()
			stop := heartbeat.Relay(ctx, 10*s, sink.beat)
			stop()
			sink.want(t)
			stop = heartbeat.Relay(ctx, 10*s, sink.beat)
			heartbeat.BeatWith(ctx, "a")
			synctest.Wait()
			heartbeat.Beat(ctx)
			stop()
			time.Sleep(time.Hour)
			sink.want(t, delivery{0, "a"})
		}},
		{"a hold", func(t *testing.T, ctx context.Context) {
			sink := newLog()
			defer heartbeat.Relay(ctx, 10*s, sink.beat)()
			time.Sleep(s)
			release := heartbeat.Hold(ctx)
			time.Sleep(25 * s) // until 26 s
			release()
			time.Sleep(time.Hour)
			sink.want(t, delivery{s, nil}, delivery{11 * s, nil},
				delivery{21 * s, nil}, delivery{31 * s, nil})
		}},
		{"a hold without a pause between two calls", func(t *testing.T, ctx context.Context) {
			sink := newLog()
			defer heartbeat.Relay(ctx, -1, sink.beat)()
			release := heartbeat.Hold(ctx)
			time.Sleep(s)
			release()
			time.Sleep(time.Hour)
			sink.want(t, delivery{0, nil}, delivery{s, nil})
		}},
		{"a negative interval means no pause", func(t *testing.T, ctx context.Context) {
			sink := newLog()
			defer heartbeat.Relay(ctx, -1, sink.beat)()
			for i := range 3 {
				heartbeat.BeatWith(ctx, i)
				synctest.Wait()
				time.Sleep(time.Nanosecond)
			}
			sink.want(t, delivery{0, 0}, delivery{1, 1}, delivery{2, 2})
		}},
		{"two at once, one with the default interval", func(t *testing.T, ctx context.Context) {
			a, b := newLog(), newLog()
			stop := heartbeat.Relay(ctx, 0, a.beat)
			heartbeat.Relay(ctx, 3500*time.Millisecond, b.beat)
			for range 61 {
				heartbeat.Beat(ctx)
				time.Sleep(s)
			}
			stop()
			time.Sleep(10 * s)
			if a.len() != 7 || b.len() != 19 {
				t.Errorf("%d and %d deliveries, want 7 and 19", a.len(), b.len())
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) { execution(t, 0, tc.fn) })
	}
}

// SPEC 4.5: whatever the sink does, beats, limits and results are on time.
func TestRelayToABadSink(t *testing.T) {
	for _, tc := range []struct {
		name  string
		sink  func(ctx context.Context)
		calls int // calls in a minute with one beat per second
	}{
		{"panics", func(context.Context) { panic("boom") }, 60},
		{"goexits", func(context.Context) { runtime.Goexit() }, 60},
		{"slow", func(context.Context) { time.Sleep(7 * time.Second) }, 9},
		{"hangs until it is told to stop", func(ctx context.Context) { <-ctx.Done() }, 1},
		{"is deaf", func(context.Context) { time.Sleep(2 * time.Hour) }, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				calls, running := 0, 0
				start := time.Now()
				err := timeout.Run(t.Context(), func(ctx context.Context) error {
					heartbeat.Relay(ctx, time.Second, func(ctx context.Context, _ any) {
						mu.Lock()
						calls++
						if running++; running > 1 {
							t.Error("called while it runs")
						}
						mu.Unlock()
						defer func() { mu.Lock(); running--; mu.Unlock() }()
						tc.sink(ctx)
					})
					for range 60 {
						before := time.Now()
						heartbeat.Beat(ctx)
						if time.Since(before) != 0 {
							t.Error("the beat was delayed")
						}
						time.Sleep(time.Second)
					}
					<-ctx.Done()
					return nil
				}, timeout.Config{Idle: 2 * time.Second})
				var e *timeout.Error
				if !errors.As(err, &e) || e.Kind != timeout.ErrIdle || time.Since(start) != 61*time.Second {
					t.Errorf("%v after %v, want an idle timeout after 61s", err, time.Since(start))
				}
				mu.Lock()
				if calls != tc.calls {
					t.Errorf("called %d times, want %d", calls, tc.calls)
				}
				mu.Unlock()
				time.Sleep(3 * time.Hour)
				mu.Lock()
				defer mu.Unlock()
				if calls != tc.calls {
					t.Errorf("called %d times after the end", calls-tc.calls)
				}
			})
		})
	}
}

// SPEC 4.5: the newest detail is what is left of work that was stopped, and nothing waits for the sink but stop, and
// that for 2 s.
func TestRelayOfAStoppedExecution(t *testing.T) {
	const s = time.Second
	burst := func(ctx context.Context) {
		for i := range 10 {
			heartbeat.BeatWith(ctx, i)
			synctest.Wait() // the first one is on its way
			time.Sleep(s / 10)
		}
	}
	for _, tc := range []struct {
		name     string
		sink     func(ctx context.Context)
		fn       func(ctx context.Context, stop func())
		want     []any // details that the sink had when Run returned, nil where that waits for nothing
		returned time.Duration
		later    []any // and an hour later
	}{
		{"returns at the limit", func(context.Context) {}, func(ctx context.Context, stop func()) {
			defer stop()
			burst(ctx)
			<-ctx.Done()
		}, []any{0, 9}, 5900 * time.Millisecond, []any{0, 9}},
		{"has news in its grace", func(context.Context) {}, func(ctx context.Context, stop func()) {
			defer stop()
			burst(ctx)
			<-ctx.Done()
			for i := range 3 {
				time.Sleep(s)
				heartbeat.BeatWith(ctx, 100+i)
			}
		}, []any{0, 9, 102}, 8900 * time.Millisecond, []any{0, 9, 102}},
		{"is deaf", func(context.Context) {}, func(ctx context.Context, _ func()) {
			burst(ctx)
			<-ctx.Done()
			time.Sleep(s)
			heartbeat.BeatWith(ctx, "in the grace")
			time.Sleep(10 * s)
			heartbeat.BeatWith(ctx, "after it")
		}, nil, 10900 * time.Millisecond, []any{0, 9, "in the grace"}},
		{"a slow sink", func(context.Context) { time.Sleep(1500 * time.Millisecond) }, func(ctx context.Context, stop func()) {
			defer stop()
			burst(ctx)
		}, []any{0, 9}, 3 * s, []any{0, 9}},
		{"a sink that hangs", func(ctx context.Context) { <-ctx.Done() }, func(ctx context.Context, stop func()) {
			defer stop()
			burst(ctx)
		}, []any{0}, 3 * s, []any{0}},
		{"a sink that is deaf", func(context.Context) { time.Sleep(time.Minute) }, func(ctx context.Context, stop func()) {
			defer stop()
			burst(ctx)
		}, []any{0}, 3 * s, []any{0}},
		{"a sink that panics", func(context.Context) { panic("boom") }, func(ctx context.Context, stop func()) {
			defer stop()
			burst(ctx)
		}, []any{0, 9}, s, []any{0, 9}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := newLog()
				details := func() (all []any) {
					sink.mu.Lock()
					defer sink.mu.Unlock()
					for _, c := range sink.calls {
						all = append(all, c.Detail)
					}
					return all
				}
				_ = timeout.Run(t.Context(), func(ctx context.Context) error {
					tc.fn(ctx, heartbeat.Relay(ctx, 10*s, func(ctx context.Context, detail any) {
						if heartbeat.FromContext(ctx) != nil {
							t.Error("the sink's context has a heartbeat")
						}
						sink.beat(ctx, detail)
						tc.sink(ctx)
					}))
					return nil
				}, timeout.Config{Idle: 5 * s, Grace: 5 * s})
				if got := time.Since(sink.start); got != tc.returned {
					t.Errorf("returned after %v, want %v", got, tc.returned)
				}
				if diff := cmp.Diff(tc.want, details()); diff != "" && tc.want != nil {
					t.Errorf("at the return (-want +got):\n%s", diff)
				}
				time.Sleep(time.Hour)
				if diff := cmp.Diff(tc.later, details()); diff != "" {
					t.Errorf("later (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// SPEC 4.5: a call that is in progress at the limit is followed by the newest detail at once.
func TestRelayInACallAtTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const s = time.Second
		sink := newLog()
		_ = timeout.Run(t.Context(), func(ctx context.Context) error {
			heartbeat.Relay(ctx, s, func(ctx context.Context, detail any) {
				sink.beat(ctx, detail)
				time.Sleep(8 * s)
			})
			heartbeat.BeatWith(ctx, "a")
			synctest.Wait()
			heartbeat.BeatWith(ctx, "b")
			time.Sleep(time.Hour)
			return nil
		}, timeout.Config{Idle: 5 * s, Grace: 5 * s})
		time.Sleep(2 * time.Hour)
		sink.want(t, delivery{0, "a"}, delivery{8 * s, "b"})
	})
}

// SPEC 4.5: what is left at the end is how far the work had come, and not what it waited for.
func TestRelayStoppedInAWait(t *testing.T) {
	execution(t, 0, func(t *testing.T, ctx context.Context) {
		sink := newLog()
		stop := heartbeat.Relay(ctx, 10*time.Second, sink.beat)
		heartbeat.BeatWith(ctx, "a")
		synctest.Wait()
		heartbeat.BeatWith(ctx, "b")
		go progress.AwaitReply(ctx, "an answer", progress.Wait{}, func(ctx context.Context) (any, error) { <-ctx.Done(); return nil, nil })
		synctest.Wait()
		stop()
		if last := sink.calls[len(sink.calls)-1]; last.Detail != "b" {
			t.Errorf("the last is %v", last.Detail)
		}
	})
}

// A relay made after the end of its execution never calls its sink and retains nothing.
func TestRelayAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ctx context.Context
		_ = timeout.Run(t.Context(), func(c context.Context) error { ctx = c; return nil })
		stop := heartbeat.Relay(ctx, 1, func(context.Context, any) {
			t.Error("called")
		})
		heartbeat.Beat(ctx)
		synctest.Wait()
		stop()
	})
}

// A badContext panics once it has been told to.
type badContext struct {
	context.Context
	bad atomic.Bool
}

func (c *badContext) Err() error {
	if c.bad.Load() {
		panic("the caller's")
	}
	return nil
}

// SPEC 3.24: a context that panics when a beat looks at it ends the beats, and not the process.
func TestKeepOfAContextThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			bad := &badContext{Context: ctx}
			return heartbeat.Keep(bad, 10*time.Millisecond, func(context.Context) error {
				time.Sleep(time.Second)
				bad.bad.Store(true)
				<-ctx.Done()
				return nil
			})
		}, timeout.Config{Idle: 100 * time.Millisecond})
		if !errors.Is(err, timeout.ErrIdle) {
			t.Error(err)
		}
	})
}

// SPEC 2.13: what repeats by itself waits for a millisecond at least.
func TestIntervalOfNanoseconds(t *testing.T) {
	execution(t, time.Hour, func(t *testing.T, ctx context.Context) {
		var calls atomic.Int64
		stop := heartbeat.Relay(ctx, 10, func(context.Context, any) { calls.Add(1) })
		release := heartbeat.Hold(ctx)
		time.Sleep(2*time.Millisecond + time.Microsecond)
		release()
		stop()
		if n := calls.Load(); n != 3 {
			t.Errorf("the sink was called %d times in 2 ms", n)
		}
		before := heartbeat.FromContext(ctx).Count()
		_ = heartbeat.Keep(ctx, 10, func(context.Context) error {
			time.Sleep(2*time.Millisecond + time.Microsecond)
			return nil
		})
		if n := heartbeat.FromContext(ctx).Count() - before; n != 3 {
			t.Errorf("%d beats in 2 ms", n)
		}
	})
}
