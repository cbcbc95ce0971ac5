package timeout_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 6.12: an idle limit that falls due while nobody has looked for signs of life is judged when somebody has, a quarter
// of it later in any case, or 2 s where that is more, and a look is asked for once. The simulation has the same with
// random probes, and bounds where several things happen at an instant.
func TestProbe(t *testing.T) {
	const idle = 8 * time.Second
	wait := func(ctx context.Context) error { <-ctx.Done(); return nil }
	sleep := func(d time.Duration) func(context.Context) error {
		return func(ctx context.Context) error { time.Sleep(d); return ctx.Err() }
	}
	beatAt := func(d time.Duration) func(context.Context) error {
		return func(ctx context.Context) error { time.Sleep(d); heartbeat.Beat(ctx); return wait(ctx) }
	}
	for name, tt := range map[string]struct {
		limits timeout.Config
		fn     func(context.Context) error
		begun  time.Duration // when a look begins that nobody has asked for
		takes  time.Duration // each look
		work   time.Duration // until when a look finds some

		want  error
		ended time.Duration
		asked int // how often a look was asked for
	}{
		"asked when the limit falls due":   {fn: wait, want: timeout.ErrIdle, ended: idle, asked: 1},
		"waited for":                       {fn: wait, takes: 2*time.Second - 1, want: timeout.ErrIdle, ended: 10*time.Second - 1, asked: 1},
		"for a quarter at most":            {fn: wait, takes: time.Hour, want: timeout.ErrIdle, ended: 10 * time.Second, asked: 1},
		"for a quarter of a long limit":    {limits: timeout.Config{Idle: 12 * time.Second}, fn: wait, takes: time.Hour, want: timeout.ErrIdle, ended: 15 * time.Second, asked: 1},
		"for 2 s of a short limit":         {limits: timeout.Config{Idle: 2 * time.Second}, fn: wait, takes: time.Hour, want: timeout.ErrIdle, ended: 4 * time.Second, asked: 1},
		"finds work":                       {fn: wait, takes: time.Second, work: idle + 1, want: timeout.ErrIdle, ended: 9*time.Second + idle + time.Second, asked: 2},
		"a recent look will do":            {fn: wait, begun: 7 * time.Second, want: timeout.ErrIdle, ended: idle},
		"an older one will not":            {fn: wait, begun: 7*time.Second - 1, takes: time.Second / 2, want: timeout.ErrIdle, ended: idle + time.Second/2, asked: 1},
		"one that has begun is waited for": {fn: wait, begun: 7500 * time.Millisecond, takes: time.Second, want: timeout.ErrIdle, ended: 8500 * time.Millisecond, asked: 1},
		"returns in doubt":                 {fn: sleep(9 * time.Second), takes: 1500 * time.Millisecond, ended: 9 * time.Second, asked: 1},
		"a beat in doubt counts":           {fn: beatAt(9 * time.Second), takes: 1500 * time.Millisecond, want: timeout.ErrIdle, ended: 9*time.Second + idle + 1500*time.Millisecond, asked: 2},
		"the total in doubt":               {limits: timeout.Config{Idle: idle, Total: 9 * time.Second}, fn: wait, takes: 1500 * time.Millisecond, want: timeout.ErrTotal, ended: 9 * time.Second, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				if tt.limits.Idle == 0 {
					tt.limits.Idle = idle
				}
				begun, asked := time.Now(), 0
				err := timeout.Run(t.Context(), func(ctx context.Context) error {
					cell := pulse.Of(ctx)
					turn := make(chan *pulse.Probe, 1) // who looks has the probe
					look := func() {
						p := <-turn
						defer func() { turn <- p }()
						p.Begin()
						found := time.Since(begun) < tt.work
						time.Sleep(tt.takes)
						if found {
							cell.Beat()
						}
						p.End()
					}
					turn <- cell.Probe(time.Second, func() { asked++; look() })
					if tt.begun > 0 {
						time.AfterFunc(tt.begun, look)
					}
					return tt.fn(ctx)
				}, tt.limits)
				took := time.Since(begun)
				time.Sleep(2 * time.Hour) // the look that takes one is over
				synctest.Wait()
				if !errors.Is(err, tt.want) || took != tt.ended || asked != tt.asked {
					t.Errorf("%v after %v, asked %d times; want %v after %v, %d times", err, took, asked, tt.want, tt.ended, tt.asked)
				}
			})
		})
	}
}
