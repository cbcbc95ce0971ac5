//go:build unix

package procgroup_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// stream is the index of a chunk's stream: 0 for stdout, 1 for stderr.
func stream(c procgroup.Chunk) int {
	if c.Stderr {
		return 1
	}
	return 0
}

// SPEC 6.5: a process that holds the streams does not hold up the call, and the result says so.
func TestDaemonHoldsStreams(t *testing.T) {
	holds := Step{Do: Daemon, Script: Script{ignoresTerm, lasts}}
	escapes := func(r *Run) { r.Contains = false }
	Test(t, []Scenario{
		{Name: "it is killed", Script: Script{holds, prints, exits(0)},
			Check: by(time.Second, "exited 0", is(outcome{Held: true, Stdout: "a", Combined: "a"}))},
		{Name: "it escapes", Script: Script{holds, prints, exits(3)}, Set: escapes,
			Check: by(time.Second, "exited 3", is(outcome{Error: "exit status 3", Held: true, Stdout: "a", Combined: "a"}))},
		{Name: "it escapes from a limit", Script: Script{holds, ignoresTerm, prints, lasts}, Set: escapes,
			Options: []procgroup.Option{limits(time.Minute, 0), procgroup.WithKillGrace(3 * time.Second)},
			Check: by(64*time.Second, "total timeout 124", is(outcome{Message: "tool process timed out after 60000ms.", Error: "Tool exceeded wall-clock limit of 60s.",
				Escalated: true, Held: true, Stdout: "a", Combined: "a"}))},
		{Name: "with orphans there is nothing to wait for", Script: Script{holds, exits(0)}, Options: []procgroup.Option{procgroup.WithOrphans()},
			Check: by(time.Second/2, "exited 0", is(outcome{Held: true}))},
	}...)
}

// SPEC 6.3: as much is kept as there may be; the counts are exact.
func TestOutputAtTheCap(t *testing.T) {
	for limit, kept := range map[int]string{
		7: "abcdef", 6: "abcdef", 5: "bcdef", 1: "f", 0: "abcdef", -1: "", math.MinInt: "", math.MaxInt: "abcdef",
	} {
		Test(t, Scenario{
			Name: fmt.Sprint(limit), Script: Script{writes(6)}, Options: []procgroup.Option{procgroup.WithMaxOutput(limit)},
			Check: func(r *Run) {
				is(outcome{Stdout: kept, Combined: kept})(r)
				for _, o := range []procgroup.Output{r.Result.Stdout, r.Result.Combined} {
					if o.Total != 6 || o.Dropped != int64(6-len(kept)) || len(o.Bytes()) != len(kept) {
						r.Errorf("%d of %d bytes kept, %d dropped", len(o.Bytes()), o.Total, o.Dropped)
					}
				}
			},
		})
	}
}

// SPEC 6.3: the last MiB of a flood is kept, its beginning on request, or all of it.
func TestFlood(t *testing.T) {
	const size = 3 << 20
	all := make([]byte, size)
	for i := range all {
		all[i] = Byte(int64(i))
	}
	for name, row := range map[string]struct {
		opt        procgroup.Option
		head, tail int
	}{
		"as by default": {nil, 0, 1 << 20},
		"the beginning": {procgroup.WithHead(1 << 20), 1 << 20, 1 << 20},
		"everything":    {procgroup.WithMaxOutput(math.MaxInt), 0, size},
	} {
		Test(t, Scenario{Name: name, Script: Script{writes(size)}, Options: []procgroup.Option{row.opt, limits(time.Hour, time.Second)}, Check: func(r *Run) {
			want := string(all[:row.head]) + string(all[size-row.tail:])
			for _, o := range []procgroup.Output{r.Result.Stdout, r.Result.Combined} {
				if string(o.Bytes()) != want || o.Total != size || o.Dropped != int64(size-len(want)) {
					r.Errorf("%d of %d bytes kept, %d dropped", len(o.Bytes()), o.Total, o.Dropped)
				}
			}
		}})
	}
}

// A combined has both streams in the order of arrival, and a callback gets all of both, with one end of each.
func TestCombined(t *testing.T) {
	var mu sync.Mutex
	var got [2]string
	var ends [2]int
	Test(t, Scenario{
		Name:   "in turns",
		Script: Script{prints, sleeps(1), {Do: Write, FD: 2, N: 2}, sleeps(1), prints},
		Options: []procgroup.Option{procgroup.WithOutput(func(c procgroup.Chunk) {
			mu.Lock()
			defer mu.Unlock()
			got[stream(c)] += string(c.Data)
			if c.Last {
				ends[stream(c)]++
			}
		})},
		Check: func(r *Run) {
			is(outcome{Stdout: "ab", Stderr: "AB", Combined: "aABb"})(r)
			mu.Lock()
			defer mu.Unlock()
			if got != [2]string{"ab", "AB"} || ends != [2]int{1, 1} {
				r.Errorf("the callback got %q, and %v ends", got, ends)
			}
		},
	})
}

// SPEC 6.11: a callback that is slow, blocks, panics or exits its goroutine.
func TestCallback(t *testing.T) {
	t.Run("slow", func(t *testing.T) { // what it does not get is counted, to it and in the result
		var mu sync.Mutex
		var seen, skipped int64
		const size = 3 << 20
		Test(t, Scenario{
			Name:   "slow",
			Script: Script{writes(size), sleeps(time.Second)},
			Options: []procgroup.Option{procgroup.WithOutput(func(c procgroup.Chunk) {
				time.Sleep(20 * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				seen, skipped = seen+int64(len(c.Data)), skipped+c.Skipped
			})},
			Check: func(r *Run) {
				if seen+skipped != size || r.Result.Skipped != skipped || skipped == 0 {
					r.Errorf("%d bytes seen, %d skipped, and %d in the result", seen, skipped, r.Result.Skipped)
				}
			},
		})
	})
	t.Run("blocks", func(t *testing.T) {
		release, calls := make(chan struct{}), 0
		Test(t, Scenario{
			Name:   "blocks",
			Script: Script{prints, sleeps(time.Second), prints},
			Set:    func(*Run) { release = make(chan struct{}) },
			Options: []procgroup.Option{procgroup.WithOutput(func(procgroup.Chunk) {
				calls++
				<-release
			})},
			Check: by(2*time.Second, "exited 0", is(outcome{Stdout: "ab", Combined: "ab", Skipped: 1}), func(r *Run) {
				close(release)
				synctest.Wait()
				if calls != 1 {
					r.Errorf("%d calls, some after the end", calls)
				}
			}),
		})
	})
	last := func(do func()) procgroup.Option {
		return procgroup.WithOutput(func(c procgroup.Chunk) {
			if c.Last {
				do()
			}
		})
	}
	fails := func() { panic("callback") }
	panicked := func(r *Run) {
		if p := (*timeout.PanicError)(nil); !errors.As(r.Err, &p) || p.Value != "callback" {
			r.Error(r.Err)
		}
	}
	Test(t, []Scenario{
		{Name: "panics", Script: Script{prints, lasts}, Options: []procgroup.Option{procgroup.WithOutput(func(procgroup.Chunk) { fails() })},
			Want: []string{"0s 1: SIGKILL, dies of SIGKILL", "0s wait: aborted 130"}, Check: panicked},
		{
			Name:    "exits its goroutine",
			Script:  Script{prints, lasts},
			Options: []procgroup.Option{procgroup.WithOutput(func(procgroup.Chunk) { runtime.Goexit() })},
			Want:    []string{"0s 1: SIGKILL, dies of SIGKILL", "0s wait: aborted 130"},
			Check: func(r *Run) {
				if !errors.Is(r.Err, timeout.ErrGoexit) {
					r.Error(r.Err)
				}
			},
		},
		{Name: "panics at the end", Script: Script{prints, exits(0)}, Options: []procgroup.Option{last(func() { time.Sleep(time.Millisecond); fails() })},
			Want: []string{"0s 1: exit 0", "1ms wait: exited 1"}, Check: panicked},
		{Name: "panics at the end of the output", Script: Script{{Do: Close, FD: 1}, lasts}, Options: []procgroup.Option{last(fails)},
			Want: []string{"0s 1: SIGKILL, dies of SIGKILL", "0s wait: aborted 130"}, Check: panicked},
		{Name: "panics after a limit", Script: Script{lasts}, Options: []procgroup.Option{last(fails), limits(time.Second, 0)},
			Want: []string{"1s 1: SIGTERM, dies of SIGTERM", "1s wait: total timeout 124"}, Check: panicked},
	}...)
}

// SPEC 6.13: the longest silence is known whether or not a limit fired.
func TestLongestGap(t *testing.T) {
	const pause = 6 * time.Second
	for name, row := range map[string]struct {
		script Script
		limits timeout.Config
	}{
		"before the first": {Script{sleeps(pause), prints}, timeout.Config{}},
		"between two":      {Script{sleeps(1), prints, sleeps(pause), prints, sleeps(pause - 1)}, timeout.Config{}},
		"after the last":   {Script{prints, sleeps(pause)}, timeout.Config{}},
		"idle limit":       {Script{sleeps(1), prints, lasts}, timeout.Config{Idle: pause}},
		"total limit":      {Script{sleeps(pause), prints, lasts}, timeout.Config{Total: 2*pause - 1}},
	} {
		Test(t, Scenario{Name: name, Script: row.script, Options: []procgroup.Option{procgroup.WithLimits(row.limits)}, Check: func(r *Run) {
			if r.Result.LongestGap != pause {
				r.Errorf("%v", r.Result.LongestGap)
			}
			if stop := (*timeout.Error)(nil); errors.As(r.Err, &stop) && stop.LongestGap != pause {
				r.Errorf("%v in the error", stop.LongestGap)
			}
		}})
	}
}
