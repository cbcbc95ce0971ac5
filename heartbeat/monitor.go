package heartbeat

import (
	"context"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// A Monitor gives access to the heartbeat of one execution. The methods of a nil *Monitor do nothing and return zero
// values. All methods are safe for concurrent use. [FromContext] returns a Monitor, which must not be copied.
type Monitor pulse.Cell

func (m *Monitor) cell() *pulse.Cell { return (*pulse.Cell)(m) }

// FromContext returns the Monitor of the innermost execution of ctx, or nil if there is none. Every
// call for the same execution returns the same Monitor.
func FromContext(ctx context.Context) *Monitor { return (*Monitor)(pulse.Of(ctx)) }

// Beat is the function [Beat] without the lookup in the context.
func (m *Monitor) Beat() { m.cell().Beat() }

// Count returns the number of beats so far. It includes the beats of nested executions and one beat for the start of
// each of them, but not the start of this execution. If more than a hundred beats come within a millisecond, the rest
// of that millisecond is not counted: Count shows whether and roughly how often a tool beats, not how many items it
// has processed.
func (m *Monitor) Count() uint64 {
	if m == nil {
		return 0
	}
	return m.cell().Count()
}

// Detail returns the newest detail of the execution or of a nested one, or nil if there was none: one that was passed
// to [BeatWith], or one that another package of this module has set, as progress.Await does for the time of a wait.
// It can still be read after the end of the execution.
func (m *Monitor) Detail() any {
	if m == nil {
		return nil
	}
	return m.cell().Detail()
}
