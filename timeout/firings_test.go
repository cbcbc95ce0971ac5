package timeout_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 3.16: the longest stretch in which no timer fired counts, as far as it lies between the
// instant at which the timer was due and now.
func TestLongestPause(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		name     string
		noted    []time.Duration
		from, to time.Duration
		want     time.Duration
	}{
		{"nothing has fired", nil, 100 * ms, 300 * ms, 200 * ms},
		{"nothing has fired since", []time.Duration{50 * ms}, 100 * ms, 300 * ms, 200 * ms},
		{"one fired meanwhile", []time.Duration{180 * ms}, 100 * ms, 300 * ms, 120 * ms},
		{"the first finds it", []time.Duration{50 * ms, 300 * ms}, 100 * ms, 300 * ms, 200 * ms},
		{"the others find it", []time.Duration{50 * ms, 300 * ms, 301 * ms, 302 * ms}, 100 * ms, 302 * ms, 200 * ms},
		{"one was due at its end", []time.Duration{50 * ms, 300 * ms}, 295 * ms, 305 * ms, 5 * ms},
		{"it was before", []time.Duration{50 * ms, 300 * ms, 310 * ms}, 301 * ms, 310 * ms, 0},
		{"a backlog", []time.Duration{100 * ms, 110 * ms, 120 * ms, 130 * ms}, 100 * ms, 130 * ms, 0},
		{"a pause of a nanosecond more", []time.Duration{100 * ms, 110*ms + 1, 120 * ms}, 100 * ms, 120 * ms, 10*ms + 1},
		{"a shorter one after it", []time.Duration{50 * ms, 300 * ms, 400 * ms}, 100 * ms, 400 * ms, 200 * ms},
		{"a shorter one after it, and due then", []time.Duration{50 * ms, 300 * ms, 400 * ms}, 300 * ms, 400 * ms, 100 * ms},
		{"a longer one after it", []time.Duration{250 * ms, 300 * ms, 700 * ms}, 100 * ms, 700 * ms, 400 * ms},
		{"the clock was read before another timer's", []time.Duration{300 * ms, 200 * ms}, 250 * ms, 300 * ms, 50 * ms},
		{"before the process began", []time.Duration{300 * ms}, -500 * ms, -200 * ms, 300 * ms},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var f timeout.Firings
			for _, at := range tc.noted {
				f.Note(at)
			}
			if got := f.LongestPause(tc.from, tc.to); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

// The record stays small, and keeps the newest pauses.
func TestFiringsAreBounded(t *testing.T) {
	var f timeout.Firings
	var at time.Duration
	for i := range 1000 {
		at += 2*time.Second - time.Duration(i)*time.Millisecond
		f.Note(at)
		if n := f.Pauses(); n > 32 {
			t.Fatalf("%d pauses", n)
		}
	}
	if got, want := f.LongestPause(at-2003*time.Millisecond, at), 1002*time.Millisecond; got != want {
		t.Errorf("%v, want the last but one of %v", got, want)
	}
}

// SPEC 3.16: however many timers fire at the same time after a pause, each of them finds it.
func TestFiringsRace(t *testing.T) {
	for range 200 {
		var f timeout.Firings
		var wg sync.WaitGroup
		for i := range 2 * runtime.GOMAXPROCS(0) {
			wg.Go(func() {
				now := time.Minute + time.Duration(i)*time.Microsecond
				f.Note(now)
				if got := f.LongestPause(30*time.Second, now); got < 30*time.Second || got > 31*time.Second {
					t.Errorf("%v, want 30s", got)
				}
			})
		}
		wg.Wait()
	}
}

// SPEC 3.16: a timer that is late while others fire waits in a backlog of the process's own, which is no stall, unless the others
// leave a stretch of more than the slack. Under an idle limit of 1 s that is 250 ms.
func TestBacklogIsNoStall(t *testing.T) {
	for apart, stalls := range map[time.Duration]int{time.Millisecond: 0, 250 * time.Millisecond: 0, 250*time.Millisecond + 1: 1} {
		t.Run(apart.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				defer timeout.RecordFirings()()
				const late = time.Second
				var wg sync.WaitGroup
				for at := apart; at < late; at += apart { // the timers of others, which are late as well
					wg.Go(func() {
						_ = timeout.Run(t.Context(), func(ctx context.Context) error {
							timeout.DelayTimer(ctx, at)
							<-ctx.Done()
							return nil
						}, timeout.Config{Total: time.Second})
					})
				}
				err := timeout.Run(t.Context(), func(ctx context.Context) error {
					timeout.DelayTimer(ctx, late)
					<-ctx.Done()
					return nil
				}, timeout.Config{Idle: time.Second})
				if e := stopped(t, err); e.Kind != timeout.ErrIdle || e.Stalls != stalls || e.Elapsed != time.Second+late+time.Duration(stalls)*time.Second {
					t.Errorf("%v after %v, %d stalls, want %d", e.Kind, e.Elapsed, e.Stalls, stalls)
				}
				wg.Wait()
			})
		})
	}
}
