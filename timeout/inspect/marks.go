package inspect

import (
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// A mark records the state of an execution at one instant.
type mark struct {
	At       time.Duration
	LastBeat time.Duration // instant of the last beat, or of what SinceBeat of timeout.Figures counts as one
	Beats    uint64        // number of beats
	Held     time.Duration // the total time for which the idle check was held
}

// maxMarks is the greatest number of marks in a timeline. When it is reached, every second mark is dropped, and later
// marks are at least twice as far apart. That loses the time of events but not their number, because each mark counts
// all events before it.
const maxMarks = 128

// A track holds the marks of a running execution.
type track struct {
	marks []mark
	step  time.Duration // least distance between two marks
}

func markOf(s *timeout.Snapshot) mark {
	return mark{At: s.Elapsed, LastBeat: s.Elapsed - s.SinceBeat, Beats: s.Beats, Held: s.Held}
}

func (t *track) add(m mark) {
	if n := len(t.marks); n > 0 && m.At-t.marks[n-1].At < t.step {
		return
	}
	if len(t.marks) >= maxMarks {
		half := t.marks[:0]
		for i := 1; i < len(t.marks); i += 2 {
			half = append(half, t.marks[i])
		}
		t.marks = half
		t.step = max(2*t.step, m.At/maxMarks)
	}
	t.marks = append(t.marks, m)
}
