package procgroup

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 6.12: work is looked at while there is no output, six times per idle limit, and what
// is stuck is stopped no earlier than the limit after its last work, and a quarter of it
// later at the latest, where looks take no time. The tree is a fake here, so that the clock can be one.
func TestWorkIsLookedFor(t *testing.T) {
	const idle, both = 12 * time.Second, 60100 * time.Millisecond
	const rate = 25 // of the least: 100 ms of work are enough for a look of 2 s, and 2 s are not for one of a minute
	for name, tt := range map[string]struct {
		output, work          time.Duration // until then, every 100 ms; all the time
		takes                 time.Duration // a look
		bytes, bytesTake      time.Duration // the same of bytes; where neither is set they are not looked at
		earliest, latest      time.Duration // of the idle timeout
		leastLooks, mostLooks int
	}{
		"neither":                   {0, 0, 0, 0, 0, idle, idle, 6, 7},
		"work for a while":          {0, 61 * time.Second, 0, 0, 0, 61*time.Second + idle, 61*time.Second + idle + idle/4, 30, 45},
		"output for a while":        {61 * time.Second, 0, 0, 0, 0, 60*time.Second + idle, 61*time.Second + idle, 5, 7},
		"work, and then output too": {61 * time.Second, 30 * time.Second, 0, 0, 0, 60*time.Second + idle, 61*time.Second + idle + idle/4, 5, 8},
		"output, and work for longer": {61 * time.Second, 83500 * time.Millisecond, 0, 0, 0,
			83500*time.Millisecond + idle, 83500*time.Millisecond + idle + idle/4, 10, 20},
		// On a busy machine a look takes its time, and the one that counts is not over when the
		// limit falls due.
		"neither, slowly":          {0, 0, 1500 * time.Millisecond, 0, 0, idle, idle + idle/4, 4, 7},
		"work for a while, slowly": {0, 61 * time.Second, 11 * time.Second, 0, 0, 61*time.Second + idle, 61*time.Second + 11*time.Second + idle + idle/4, 5, 10},
		"neither, very slowly":     {0, 0, time.Minute, 0, 0, idle + idle/4, idle + idle/4, 0, 1},
		// A look at one kind of work neither waits for the other, nor takes what that finds for output.
		"work, and bytes very slowly": {0, 61 * time.Second, 0, 0, time.Minute, 61*time.Second + idle, 61*time.Second + idle + idle/2, 30, 45},
		"bytes, and work very slowly": {0, 0, time.Minute, 61 * time.Second, 0, 61*time.Second + idle, 61*time.Second + idle + idle/2, 30, 45},
		"both for a while":            {0, both, 0, both, 0, both + idle, both + idle + idle/4, 60, 90},
		"output, and both for longer": {61 * time.Second, 84100 * time.Millisecond, 0, 84100 * time.Millisecond, 0,
			84100*time.Millisecond + idle, 84100*time.Millisecond + idle + idle/4, 20, 40},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				var looks atomic.Int32
				var took time.Duration
				err := timeout.Run(t.Context(), func(ctx context.Context) error {
					activity := Activity{CPU: true, CPURate: defaultCPURate, IO: tt.bytes+tt.bytesTake > 0, IORate: defaultIORate}
					w := startWatches(ctx, activity, func(io bool) proctree.Meter {
						work, takes := tt.work, tt.takes
						if io {
							work, takes = tt.bytes, tt.bytesTake
						}
						var counted time.Duration
						return func() (used proctree.Usage, ok bool) {
							time.Sleep(takes)
							looks.Add(1)
							now := min(time.Since(begun), work)
							if io {
								used.IO = uint64((now - counted).Seconds() * rate * defaultIORate)
							} else {
								used.CPU = time.Duration(float64(now-counted) * rate * defaultCPURate)
							}
							counted = now
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
				if n := int(looks.Load()); n < tt.leastLooks || n > tt.mostLooks {
					t.Errorf("%d looks; want %d to %d", n, tt.leastLooks, tt.mostLooks)
				}
			})
		})
	}
	if err := timeout.Run(t.Context(), func(ctx context.Context) error {
		if w := startWatches(ctx, Activity{CPU: true}, nil); w != nil {
			t.Error("looks without an idle limit")
		}
		return nil
	}, timeout.Config{Total: time.Hour}); err != nil {
		t.Error(err)
	}
}

// On a busy machine some looks take their time, and others do not. Use is called when a look is over: so what
// hardly reaches the rate counts by the next look too, and what polls does not.
func TestRateOfSlowLooks(t *testing.T) {
	const idle = 12 * time.Second
	everyOther := func(look int) time.Duration { return time.Duration(look%2) * 3 * time.Second }
	for name, tt := range map[string]struct {
		takes            func(look int) time.Duration // from 1 on
		uses             func(since time.Duration) time.Duration
		starved          int           // a look in which it got no processor
		earliest, latest time.Duration // of the idle timeout
	}{
		"enough until 66 s": {everyOther, func(since time.Duration) time.Duration { return min(since, 66*time.Second) * 12 / 1000 }, 0,
			66*time.Second + idle, 66*time.Second + idle},
		"not enough": {everyOther, func(since time.Duration) time.Duration { return since * 9 / 1000 }, 0, idle, idle + idle/4},
		// The look from 6 s to 11.8 s is too old for the limit that falls due at 12 s.
		"not enough, but for a moment": {func(look int) time.Duration {
			if look == 3 {
				return 5800 * time.Millisecond
			}
			return 0
		},
			func(since time.Duration) time.Duration { return since.Truncate(time.Second) * 7 / 1000 }, 4, idle, idle + idle/4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, looks := time.Now(), 0
				var counted, took time.Duration
				err := timeout.Run(t.Context(), func(ctx context.Context) error {
					w := startWatches(ctx, Activity{CPU: true, CPURate: 0.01}, func(bool) proctree.Meter {
						return func() (used proctree.Usage, ok bool) {
							looks++
							time.Sleep(tt.takes(looks))
							now := tt.uses(time.Since(begun))
							used.CPU, counted = now-counted, now
							if looks == tt.starved {
								used.Starved = 1
							}
							return used, true
						}
					})
					defer w.stop()
					<-ctx.Done()
					took = time.Since(begun)
					return nil
				}, timeout.Config{Idle: idle, Total: time.Hour, Grace: time.Hour})
				if !errors.Is(err, timeout.ErrIdle) || took < tt.earliest || took > tt.latest {
					t.Errorf("%v after %v; want %v to %v", err, took, tt.earliest, tt.latest)
				}
			})
		})
	}
}

// A look that cannot tell, for want of descriptors, say, decides about no limit: that stays in doubt, and
// the next look may come in time.
func TestLookThatCannotTell(t *testing.T) {
	for until, want := range map[time.Duration]error{13 * time.Second: timeout.ErrTotal, time.Hour: timeout.ErrIdle} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			var took time.Duration
			err := timeout.Run(t.Context(), func(ctx context.Context) error {
				w := startWatches(ctx, Activity{CPU: true, CPURate: defaultCPURate}, func(bool) proctree.Meter {
					return func() (proctree.Usage, bool) {
						return proctree.Usage{CPU: time.Hour}, time.Since(begun) > until
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

// A beat of the watches is no output, and the output before it is not forgotten.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_ = timeout.Run(t.Context(), func(ctx context.Context) error {
			s := &silence{cell: pulse.Of(ctx)}
			for i, step := range []struct {
				beat func()
				want time.Duration // the last output
			}{
				{func() {}, 0},
				{func() { heartbeat.Beat(ctx) }, time.Second},
				{s.beat, time.Second},
				{s.beat, time.Second},
				{func() { heartbeat.Beat(ctx) }, 4 * time.Second},
				{func() { heartbeat.Beat(ctx); time.Sleep(time.Second); s.beat() }, 5 * time.Second},
			} {
				if step.beat(); s.began() != step.want {
					t.Errorf("%d: %v, want %v", i, s.began(), step.want)
				}
				time.Sleep(time.Second)
			}
			return nil
		}, timeout.Config{Idle: time.Minute})
	})
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
		if got := a.enough(tt.used, time.Second, false); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// SPEC 6.12: to start small programs is not work, unless that is all that a tree does. The figures are those of
// a second.
func TestStartingProgramsIsNotWork(t *testing.T) {
	const mkdirAndSleep = 77 + 99 // page faults
	start := func(n float64) proctree.Usage {
		return proctree.Usage{CPU: time.Duration(n * 2500 * float64(time.Microsecond)), IO: uint64(n * 16000), Faults: uint64(n * mkdirAndSleep)}
	}
	slowly := func(n float64) proctree.Usage { // in a virtual machine with slow page faults, beside other work
		used := start(n)
		used.CPU, used.FaultCost = time.Duration(n*13.1*float64(time.Millisecond)), 14*time.Microsecond
		return used
	}
	python := proctree.Usage{CPU: 50 * time.Millisecond, IO: 1353168, Faults: 1931}
	compiler := func(n uint64) proctree.Usage {
		return proctree.Usage{CPU: time.Duration(n) * 20 * time.Millisecond, IO: n * 180_000, Faults: n * 1768}
	}
	a := Activity{CPU: true, IO: true}
	if err := a.check(); err != nil {
		t.Skip(err)
	}
	for name, tt := range map[string]struct {
		used   proctree.Usage
		steady bool
		want   bool
	}{
		"five times a second, with a sleep":     {start(5), false, false},
		"without one":                           {start(300), false, true},
		"without one, on a busy machine":        {start(5), true, true},
		"once in a while, and seen to run":      {start(1), true, false},
		"five times a second, slowly":           {slowly(5), false, false},
		"without a sleep, slowly":               {slowly(16), false, true},
		"and beside other work":                 {slowly(10), false, false},
		"python every second":                   {python, false, false},
		"one compiler after the other":          {compiler(40), false, true},
		"few compilers, as the machine is busy": {compiler(2), true, true},
		"a subshell that computes":              {proctree.Usage{CPU: 20 * time.Millisecond, Faults: 100}, false, true},
		"copies, and starts programs":           {proctree.Usage{IO: 300 << 10, Faults: 200}, false, true},
	} {
		if got := a.enough(tt.used, time.Second, tt.steady); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
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
					w := startWatches(ctx, Activity{CPU: true, CPURate: 0.01}, func(bool) proctree.Meter {
						return func() (proctree.Usage, bool) {
							looks++
							in := time.Since(last)
							last = time.Now()
							return proctree.Usage{CPU: in / 20, Faults: uint64(in / startingCPU), Running: tt.running(looks)}, true
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
				w := startWatches(ctx, Activity{CPU: true, CPURate: defaultCPURate}, func(bool) proctree.Meter {
					return func() (proctree.Usage, bool) {
						time.Sleep(until - time.Since(begun))
						return proctree.Usage{CPU: time.Hour}, true
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
