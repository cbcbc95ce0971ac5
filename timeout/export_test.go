package timeout

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// DelayTimer makes the timer of ctx's execution fire late by d, and nothing know of it, as
// it is when the process is stopped. A bubble of testing/synctest cannot do that.
func DelayTimer(ctx context.Context, d time.Duration) {
	e := (*Execution)(pulse.Of(ctx).Engine().(*engine))
	e.cell.Lock()
	defer e.cell.Unlock()
	e.timer.Reset(e.armed - e.cell.Now() + d)
}

// Firings is the record by which a stall is distinguished from a backlog, one that is not the
// process's.
type Firings struct{ f firings }

func (f *Firings) Note(at time.Duration) { f.f.note(at) }

func (f *Firings) LongestPause(from, to time.Duration) time.Duration {
	return f.f.longestPause(from, to)
}

// Pauses is how many pauses are on record.
func (f *Firings) Pauses() int { return len(f.f.pauses) }

// RecordFirings has executions in a bubble of testing/synctest, whose time is before the process began, keep the record of
// firings, an empty one, until undo is called.
func RecordFirings() (undo func()) {
	before := epoch
	epoch = time.Now().Add(-time.Hour)
	reset := func() {
		fired.mu.Lock()
		defer fired.mu.Unlock()
		fired.pauses = nil
		fired.last.Store(0)
	}
	reset()
	return func() {
		epoch = before
		reset()
	}
}

// SetInherited has the environment say at, in a bubble of testing/synctest, too, until undo is called. cause is what an error
// has of it.
func SetInherited(at time.Time, cause error) (undo func()) {
	before := inherited
	in := &inheritance{at: at, text: at.UTC().Format(time.RFC3339Nano), cause: cause}
	inherited, beginning = func() *inheritance { return in }, time.Time{}
	return func() { inherited, beginning = before, epoch }
}
