package procgroup

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 6.12: work is looked at while there is no output, six times per idle limit, and what
// is stuck is stopped no earlier than the limit after its last work, and a quarter of it
// later at the latest, where looks take no time. The tree is a fake here, so that the clock can be one.
func TestWorkIsLookedFor(t *testing.T) {
	const idle = 12 * time.Second
	for name, tt := range map[string]struct {
		output, work          time.Duration // until then, every 100 ms; all the time, at full rate
		takes                 time.Duration // a look
		earliest, latest      time.Duration // of the idle timeout
		leastLooks, mostLooks int
	}{
		"neither":                   {0, 0, 0, idle, idle, 6, 7},
		"work for a while":          {0, 61 * time.Second, 0, 61*time.Second + idle, 61*time.Second + idle + idle/4, 30, 45},
		"output for a while":        {61 * time.Second, 0, 0, 60*time.Second + idle, 61*time.Second + idle, 5, 7},
		"work, and then output too": {61 * time.Second, 30 * time.Second, 0, 60*time.Second + idle, 61*time.Second + idle + idle/4, 5, 8},
		"output, and work for longer": {61 * time.Second, 83500 * time.Millisecond, 0,
			83500*time.Millisecond + idle, 83500*time.Millisecond + idle + idle/4, 10, 20},
		// On a busy machine a look takes its time, and the one that counts is not over when the
		// limit falls due.
		"neither, slowly":          {0, 0, 1500 * time.Millisecond, idle, idle + idle/4, 4, 7},
		"work for a while, slowly": {0, 61 * time.Second, 11 * time.Second, 61*time.Second + idle, 61*time.Second + 11*time.Second + idle + idle/4, 5, 10},
		"neither, very slowly":     {0, 0, time.Minute, idle + idle/4, idle + idle/4, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, looks := time.Now(), 0
				var counted, took time.Duration
				err := timeout.Run(t.Context(), func(ctx context.Context) error {
					w := startWatch(ctx, Activity{CPU: true, CPURate: DefaultCPURate}, func(bool) proctree.Meter {
						return func() (used proctree.Usage, ok bool) {
							time.Sleep(tt.takes)
							looks++
							now := min(time.Since(begun), tt.work)
							used.CPU, counted = now-counted, now
							return used, true
						}
					})
					defer w.stop()
					for time.Since(begun) < tt.output {
						heartbeat.Beat(ctx)
						time.Sleep(100 * time.Millisecond)
					}
					<-ctx.Done()
					took = time.Since(begun)
					return nil
				}, timeout.Config{Idle: idle, Grace: time.Hour})
				if !errors.Is(err, timeout.ErrIdle) || took < tt.earliest || took > tt.latest {
					t.Errorf("%v after %v; want %v to %v", err, took, tt.earliest, tt.latest)
				}
				if looks < tt.leastLooks || looks > tt.mostLooks {
					t.Errorf("%d looks; want %d to %d", looks, tt.leastLooks, tt.mostLooks)
				}
			})
		})
	}
	if err := timeout.Run(t.Context(), func(ctx context.Context) error {
		if w := startWatch(ctx, Activity{CPU: true}, nil); w != nil {
			t.Error("looks without an idle limit")
		}
		return nil
	}, timeout.Config{Total: time.Hour}); err != nil {
		t.Error(err)
	}
}

// SPEC 3.16, of a process: time in which it could have worked and got no processor is not
// counted against it. One that polls, and hardly works when it can, gains nothing by that.
func TestStarvedWork(t *testing.T) {
	a := Activity{CPU: true, CPURate: 0.01, IO: true, IORate: 1000}
	for name, tt := range map[string]struct {
		used proctree.Usage
		want bool
	}{
		"works":                  {proctree.Usage{CPU: 10 * time.Millisecond}, true},
		"not enough":             {proctree.Usage{CPU: 10*time.Millisecond - 1}, false},
		"works when it can":      {proctree.Usage{CPU: 2 * time.Millisecond, Starved: 0.9}, true},
		"polls when it can":      {proctree.Usage{CPU: 500 * time.Microsecond, Starved: 0.9}, false},
		"writes when it can":     {proctree.Usage{IO: 200, Starved: 0.9}, true},
		"writes little":          {proctree.Usage{IO: 50, Starved: 0.9}, false},
		"can, and does nothing":  {proctree.Usage{}, false},
		"cannot, and did before": {proctree.Usage{Starved: 1}, false},
	} {
		if got := a.enough(tt.used, time.Second); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
