package procgroup

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/work"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A look that cannot tell, for want of descriptors, say, decides about no limit: that stays in doubt, and
// the next look may come in time.
func TestLookThatCannotTell(t *testing.T) {
	for until, want := range map[time.Duration]error{13 * time.Second: timeout.ErrTotal, time.Hour: timeout.ErrIdle} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			var took time.Duration
			err := timeout.Run(t.Context(), func(ctx context.Context) error {
				w := startWatches(ctx, Activity{CPU: true, CPURate: work.DefaultCPURate}, func(bool) work.Meter {
					return func() (work.Usage, bool) {
						return work.Usage{CPU: time.Hour}, time.Since(begun) > until
					}
				})
				defer w.stop()
				<-ctx.Done()
				took = time.Since(begun)
				return nil
			}, timeout.Config{Idle: 12 * time.Second, Total: time.Minute, Grace: time.Hour})
			if !errors.Is(err, want) || want == timeout.ErrIdle && took != 15*time.Second {
				t.Errorf("until %v: %v after %v, want %v", until, err, took, want)
			}
		})
	}
}

// SPEC 6.12: on a machine too busy for a tree that only starts programs to reach a rate, it is at work if something
// was running at three looks in a row.
func TestSteadyStarts(t *testing.T) {
	const idle = 12 * time.Second
	for name, tt := range map[string]struct {
		running func(look int) bool
		want    error
	}{
		"at each look":            {func(int) bool { return true }, timeout.ErrTotal},
		"at two of three":         {func(look int) bool { return look%3 > 0 }, timeout.ErrIdle},
		"at three of four":        {func(look int) bool { return look%4 > 0 }, timeout.ErrTotal},
		"at the first three only": {func(look int) bool { return look <= 3 }, timeout.ErrIdle},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := timeout.Run(t.Context(), func(ctx context.Context) error {
					looks, last := 0, time.Now()
					w := startWatches(ctx, Activity{CPU: true, CPURate: 0.01}, func(bool) work.Meter {
						return func() (work.Usage, bool) {
							looks++
							in := time.Since(last)
							last = time.Now()
							return work.Usage{CPU: in / 20, Faults: uint64(in / (50 * time.Microsecond)), Running: tt.running(looks)}, true
						}
					})
					defer w.stop()
					<-ctx.Done()
					return nil
				}, timeout.Config{Idle: idle, Total: 10 * idle})
				if !errors.Is(err, tt.want) {
					t.Errorf("%v, want %v", err, tt.want)
				}
			})
		})
	}
}

// SPEC 6.11: a look that is under way holds nobody up, and what it finds counts no more. What it looks at is
// closed after it.
func TestLookUnderWayAtTheEnd(t *testing.T) {
	const end = 50 * time.Minute // the first look begins after 30
	for until, want := range map[time.Duration]time.Duration{2 * time.Hour: 2 * time.Hour, 0: end} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			closed := make(chan time.Duration, 1)
			_ = timeout.Run(t.Context(), func(ctx context.Context) error {
				w := startWatches(ctx, Activity{CPU: true, CPURate: work.DefaultCPURate}, func(bool) work.Meter {
					return func() (work.Usage, bool) {
						time.Sleep(until - time.Since(begun))
						return work.Usage{CPU: time.Hour}, true
					}
				})
				time.Sleep(end)
				last := pulse.Of(ctx).Last()
				w.end()
				w.thenClose(func() { closed <- time.Since(begun) })
				if took := time.Since(begun); took != end {
					t.Errorf("a look until %v: %v", until, took)
				}
				if got := <-closed; got != want {
					t.Errorf("a look until %v: closed after %v, want %v", until, got, want)
				}
				if now := pulse.Of(ctx).Last(); now != last {
					t.Errorf("a look until %v: a beat after the end", until)
				}
				return nil
			}, timeout.Config{Idle: 3 * time.Hour})
		})
	}
}

// stop calls end and wait.
func (all watches) stop() {
	all.end()
	all.wait()
}
