package timeout_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 6.12: an idle limit that falls due while nobody has looked for signs of life is judged
// when somebody has, and not before; a quarter of it later in any case, or 2 s where that is more.
func TestProbe(t *testing.T) {
	const idle = 8 * time.Second
	short := []timeout.Option{timeout.Config{Idle: 2 * time.Second}}
	long := []timeout.Option{timeout.Config{Idle: 12 * time.Second}}
	wait := func(ctx context.Context) error { <-ctx.Done(); return nil }
	returnAt := func(d time.Duration) func(context.Context) error {
		return func(ctx context.Context) error {
			select {
			case <-time.After(d):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	for name, tt := range map[string]struct {
		fn    func(context.Context) error
		looks []time.Duration // that nobody has asked for, when they begin
		takes time.Duration   // each look
		work  time.Duration   // until when a look finds some
		opts  []timeout.Option

		want  error
		ended time.Duration
		asked int // how often a look was asked for
	}{
		"asked when the limit falls due": {fn: wait, want: timeout.ErrIdle, ended: idle, asked: 1},
		"waited for":                     {fn: wait, takes: 2*time.Second - 1, want: timeout.ErrIdle, ended: 10*time.Second - 1, asked: 1},
		"for a quarter at most":          {fn: wait, takes: time.Hour, want: timeout.ErrIdle, ended: 10 * time.Second, asked: 1},
		"for a quarter of a long limit":  {fn: wait, takes: time.Hour, opts: long, want: timeout.ErrIdle, ended: 15 * time.Second, asked: 1},
		"the total in a short doubt": {fn: wait, takes: time.Hour, opts: []timeout.Option{timeout.Config{Idle: 2 * time.Second, Total: 4*time.Second - 1}},
			want: timeout.ErrTotal, ended: 4*time.Second - 1, asked: 1},
		"a beat in a short doubt": {fn: func(ctx context.Context) error {
			time.Sleep(4*time.Second - 1)
			heartbeat.Beat(ctx)
			return wait(ctx)
		}, takes: time.Hour, opts: short, want: timeout.ErrIdle, ended: 8*time.Second - 1, asked: 2},
		"for 2 s of a short limit":      {fn: wait, takes: time.Hour, opts: short, want: timeout.ErrIdle, ended: 4 * time.Second, asked: 1},
		"waited for beyond a short one": {fn: wait, takes: 2*time.Second - 1, opts: short, want: timeout.ErrIdle, ended: 4*time.Second - 1, asked: 1},
		"finds work, and it is short":   {fn: returnAt(time.Minute), takes: 2*time.Second - 1, work: time.Hour, opts: short, ended: time.Minute, asked: 15},
		"too late":                      {fn: wait, takes: 2 * time.Second, work: time.Hour, want: timeout.ErrIdle, ended: 10 * time.Second, asked: 1},
		"finds work":                    {fn: wait, takes: time.Second, work: idle + 1, want: timeout.ErrIdle, ended: 9*time.Second + idle + time.Second, asked: 2},
		"finds work to the end":         {fn: returnAt(100 * time.Second), takes: time.Second, work: time.Hour, ended: 100 * time.Second, asked: 11},
		"a recent look will do":         {fn: wait, looks: []time.Duration{7 * time.Second}, want: timeout.ErrIdle, ended: idle},
		"an older one will not":         {fn: wait, looks: []time.Duration{7*time.Second - 1}, takes: 500 * time.Millisecond, want: timeout.ErrIdle, ended: idle + 500*time.Millisecond, asked: 1},
		"one that has begun is waited for": {fn: wait, looks: []time.Duration{7500 * time.Millisecond}, takes: time.Second,
			want: timeout.ErrIdle, ended: 8500 * time.Millisecond, asked: 1},
		"one that has begun finds work": {fn: wait, looks: []time.Duration{7500 * time.Millisecond}, takes: time.Second, work: 8 * time.Second,
			want: timeout.ErrIdle, ended: 8500*time.Millisecond + idle + time.Second, asked: 2},
		"returns in doubt":     {fn: returnAt(9 * time.Second), takes: 1500 * time.Millisecond, ended: 9 * time.Second, asked: 1},
		"returns after it":     {fn: returnAt(9*time.Second + 500*time.Millisecond), takes: 1500*time.Millisecond - 1, want: timeout.ErrIdle, ended: 9500*time.Millisecond - 1, asked: 1},
		"not asked with beats": {fn: func(ctx context.Context) error { return heartbeat.Keep(ctx, time.Second, returnAt(time.Minute)) }, ended: time.Minute},
		"a beat in doubt counts": {fn: func(ctx context.Context) error {
			time.Sleep(9 * time.Second)
			heartbeat.Beat(ctx)
			return wait(ctx)
		}, takes: 1500 * time.Millisecond, want: timeout.ErrIdle, ended: 9*time.Second + idle + 1500*time.Millisecond, asked: 2},
		"a hold in doubt counts": {fn: func(ctx context.Context) error {
			time.Sleep(9 * time.Second)
			defer heartbeat.Hold(ctx)()
			time.Sleep(time.Minute)
			return nil
		}, takes: 1500 * time.Millisecond, ended: 69 * time.Second, asked: 1},
		"aborted in doubt": {fn: func(ctx context.Context) error {
			time.Sleep(9 * time.Second)
			timeout.FromContext(ctx).Abort(nil)
			return nil
		}, takes: 1500 * time.Millisecond, want: timeout.ErrAborted, ended: 9 * time.Second, asked: 1},
		"the total in doubt": {fn: wait, takes: 1500 * time.Millisecond, opts: []timeout.Option{timeout.Config{Idle: idle, Total: 9 * time.Second}},
			want: timeout.ErrTotal, ended: 9 * time.Second, asked: 1},
		"only observed": {fn: returnAt(30 * time.Second), takes: time.Second, work: 15 * time.Second, opts: []timeout.Option{timeout.WithObserveOnly()},
			ended: 30 * time.Second, asked: 2},
		"asked once for each doubt": {fn: returnAt(time.Minute), takes: 1500 * time.Millisecond, opts: []timeout.Option{
			timeout.Config{Idle: idle, Total: 9 * time.Second}, timeout.WithObserveOnly()}, ended: time.Minute, asked: 1},
	} {
		for _, nested := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", around"}[nested], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var asked atomic.Int32
					begun := time.Now()
					var observed []time.Duration
					opts := append([]timeout.Option{timeout.Config{Idle: idle}, timeout.WithHooks(timeout.Hooks{
						Exceeded: func(_ context.Context, s timeout.Snapshot) { observed = append(observed, time.Since(begun)) },
					})}, tt.opts...)
					probed := func(ctx context.Context) error {
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
						turn <- cell.Probe(time.Second, func() { asked.Add(1); look() })
						for _, at := range tt.looks {
							time.AfterFunc(at, look)
						}
						return tt.fn(ctx)
					}
					fn := probed
					if nested {
						fn = func(ctx context.Context) error { return timeout.Run(ctx, probed, timeout.Config{}) }
					}
					err := timeout.Run(t.Context(), fn, opts...)
					took := time.Since(begun)
					time.Sleep(2 * time.Hour) // the look that takes one is over
					synctest.Wait()
					if !errors.Is(err, tt.want) || (tt.want == nil && err != nil) || took != tt.ended {
						t.Errorf("%v after %v, want %v after %v", err, took, tt.want, tt.ended)
					}
					if n := int(asked.Load()); n != tt.asked {
						t.Errorf("asked %d times, want %d", n, tt.asked)
					}
					if name == "only observed" && (len(observed) != 1 || observed[0] != 9*time.Second+idle+time.Second) {
						t.Errorf("would have been stopped at %v", observed)
					}
				})
			})
		}
	}
}

// A time that was not looked at, and cannot be any more, counts as a sign of life; what was looked
// at does not.
func TestProbeCloses(t *testing.T) {
	for name, tt := range map[string]struct{ idle, takes, closes, want time.Duration }{
		"a look ends after it":          {8 * time.Second, time.Second + 1, 9 * time.Second, 17 * time.Second},
		"a look does not end":           {8 * time.Second, time.Hour, 9 * time.Second, 17 * time.Second},
		"a look ends before it":         {8 * time.Second, time.Second - 1, 9 * time.Second, 9*time.Second - 1},
		"in a doubt beyond a new limit": {time.Second, time.Hour, 1500 * time.Millisecond, 2500 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			err := timeout.Run(t.Context(), func(ctx context.Context) error {
				probes := make(chan *pulse.Probe, 1)
				p := pulse.Of(ctx).Probe(time.Second/2, func() {
					p := <-probes
					p.Begin()
					time.Sleep(tt.takes)
					p.End()
				})
				probes <- p
				select {
				case <-time.After(tt.closes):
				case <-ctx.Done():
				}
				p.Close()
				<-ctx.Done()
				return nil
			}, timeout.Config{Idle: tt.idle})
			if took := time.Since(begun); !errors.Is(err, timeout.ErrIdle) || took != tt.want {
				t.Errorf("%s: %v after %v, want %v", name, err, took, tt.want)
			}
			time.Sleep(2 * time.Hour)
		})
	}
}
