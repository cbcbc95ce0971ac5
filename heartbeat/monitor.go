package heartbeat

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// A Monitor is the heartbeat of one execution. A nil *Monitor is that of no
// execution: its methods do nothing and return zero values. All methods are safe for
// concurrent use. Monitors come from [FromContext] alone, and must not be copied.
type Monitor pulse.Cell

// FromContext returns the monitor of the innermost execution of ctx, or nil where
// there is none.
func FromContext(ctx context.Context) *Monitor { return (*Monitor)(pulse.Of(ctx)) }

// Beat is [Beat] without the look-up in the context.
func (m *Monitor) Beat() { (*pulse.Cell)(m).Beat() }

// Last is when the last beat came; the start of the execution counts as one. It is
// on the clock of the execution. In a burst of more than a hundred beats per
// millisecond it is up to 1 ms behind.
func (m *Monitor) Last() time.Time {
	if m == nil {
		return time.Time{}
	}
	return (*pulse.Cell)(m).LastTime()
}

// Count is the number of beats so far, those of nested executions and the start of
// each of them included, the start of this one not. Where more than a hundred arrive within a millisecond, the
// rest of that millisecond's are not counted: it says whether and roughly how much
// a tool beats, not how many items it has processed.
func (m *Monitor) Count() uint64 {
	if m == nil {
		return 0
	}
	return (*pulse.Cell)(m).Count()
}
