package timeout

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A firings records when the timers of this process's executions fired, with just enough detail to distinguish a
// stall of the process from a backlog of timers. Its instants are durations since epoch.
//
// Its lock may be acquired while a cell is locked. No other lock is acquired while it is held.
type firings struct {
	last atomic.Int64 // time of the last recorded firing; later ones are less than firingsGrain after it; written under mu

	mu sync.Mutex
	// pauses holds the intervals of more than minSlack without a firing, the oldest first. A pause is dropped when a
	// later one is at least as long, so each is longer than the next one, and in practice there are few.
	pauses []pause
}

// A pause is an interval in which no timer fired.
type pause struct{ from, to time.Duration }

const (
	// minSlack is the time that a busy machine may need to run a timer's function. Without it, an execution with an
	// idle limit of a few milliseconds would take every firing for a stall, and the limit would never fire.
	minSlack = 10 * time.Millisecond

	// firingsGrain is the smallest interval between recorded firings. A timer that fires sooner after the last
	// recorded firing writes nothing, so that a hundred thousand timers do not contend for the record.
	firingsGrain = time.Millisecond
	// mostPauses bounds the number of pauses, each of which may be shorter than the one before.
	mostPauses = 32
)

// epoch is the origin of the instants that executions share. In a bubble of testing/synctest, whose time begins in
// the year 2000, all instants are before it.
var epoch = time.Now()

var fired firings

// note records that a timer fires at the instant at.
//
// When timers fire together after a pause, the first to get the lock records the pause. The others then find last
// moved on, and the pause is recorded by that time. A timer that read the clock before the last recorded firing, and
// gets the lock after it, changes nothing.
func (f *firings) note(at time.Duration) {
	if at-time.Duration(f.last.Load()) < firingsGrain {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	last := time.Duration(f.last.Load())
	if at <= last {
		return
	}
	if length := at - last; length > minSlack {
		f.pauses = slices.DeleteFunc(f.pauses, func(p pause) bool { return p.to-p.from <= length })
		if len(f.pauses) == mostPauses {
			f.pauses = slices.Delete(f.pauses, 0, 1)
		}
		f.pauses = append(f.pauses, pause{last, at})
	}
	f.last.Store(int64(at))
}

// longestPause returns the length of the longest interval between from and to in which no timer fired. If from is
// before epoch, it returns the whole interval, since no firing is recorded there.
func (f *firings) longestPause(from, to time.Duration) time.Duration {
	if from < 0 {
		return to - from
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	longest := to - max(from, time.Duration(f.last.Load()))
	for _, p := range f.pauses {
		longest = max(longest, min(to, p.to)-max(from, p.from))
	}
	return longest
}
