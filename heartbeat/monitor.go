package heartbeat

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// A Monitor is the heartbeat of one execution. A nil *Monitor is that of no
// execution: its methods do nothing and return zero values. All methods are safe for
// concurrent use. Monitors come from [FromContext] alone, and must not be copied.
type Monitor struct {
	cell *pulse.Cell // never nil
}

// FromContext returns the monitor of the innermost execution of ctx, or nil where there is
// none. It is the same one for as long as the execution is.
func FromContext(ctx context.Context) *Monitor {
	c := pulse.Of(ctx)
	if c == nil {
		return nil
	}
	m := c.View.Load()
	if m == nil {
		c.View.CompareAndSwap(nil, &Monitor{c})
		m = c.View.Load()
	}
	return m.(*Monitor)
}

// Beat is [Beat] without the look-up in the context.
func (m *Monitor) Beat() {
	if m != nil {
		m.cell.Beat()
	}
}

// Last is when the last beat came; the start of the execution counts as one. It is
// on the clock of the execution. In a burst of more than a hundred beats per
// millisecond it is up to 1 ms behind.
func (m *Monitor) Last() time.Time {
	if m == nil {
		return time.Time{}
	}
	return m.cell.LastTime()
}

// Count is the number of beats so far, those of nested executions and the start of
// each of them included, the start of this one not. Where more than a hundred arrive
// within a millisecond, the rest of that millisecond's are not counted: it says whether
// and roughly how much a tool beats, not how many items it has processed.
func (m *Monitor) Count() uint64 {
	if m == nil {
		return 0
	}
	return m.cell.Count()
}

// Detail is the newest detail that a beat of the execution, or of one within it, has
// carried, see [BeatWith]; nil if none has. It stays readable when the execution has
// ended, and is then the last.
func (m *Monitor) Detail() any {
	if m == nil {
		return nil
	}
	return m.cell.Detail()
}
