package timeout

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A firings records when the timers of this process's executions fired, only as finely as is
// needed to tell a stall of the process from a backlog in the process. Its instants are
// durations since epoch.
//
// Its lock is taken under a cell's, and nothing else is taken under it.
type firings struct {
	last atomic.Int64 // when a timer fired, up to firingsGrain ago; written under mu

	mu sync.Mutex
	// pauses are the stretches of more than minSlack without a firing, the oldest first. A
	// pause is dropped when a later one is as long, so each is shorter than the pause
	// before it, and in practice few are kept.
	pauses []pause
}

// A pause is a stretch in which no timer fired.
type pause struct{ from, to time.Duration }

const (
	// minSlack is the time that a busy machine takes to run a timer. Without it, limits of a few
	// milliseconds would see a stall in every timer, and never fire.
	minSlack = 10 * time.Millisecond

	// firingsGrain bounds the age of the record. Timers that fire closer together write
	// nothing, so a hundred thousand of them do not contend for the record.
	firingsGrain = time.Millisecond
	// mostPauses bounds the record in case each pause is shorter than the pause before.
	mostPauses = 32
)

// epoch is the origin of the process's own instants. In a bubble of testing/synctest, whose time
// begins in the year 2000, all instants are before it.
var epoch = time.Now()

var fired firings

// note records that a timer fires at the instant at.
//
// Timers that fire together after a pause race: the first to get the lock records the pause,
// and the others find it recorded, because the record is complete before last moves on. One
// that has read the clock before that and comes later than the lock changes nothing.
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

// longestPause returns the longest stretch between from and to in which no timer fired. Before
// the epoch none did.
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
