package procgroup

import (
	"fmt"
	"math"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/work"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// An Activity selects the work of a command's processes that is a heartbeat, in addition to output. It is an [Option].
// The zero Activity selects no work. With CPU, for example, the idle limit does not stop a compiler that prints
// nothing. Work is a heartbeat if its rate, measured over the whole process tree, reaches a minimum.
//
// The tree is examined six times per idle limit (the smallest among those of the command's execution and the enclosing
// executions), and only while there is no output. Without an idle limit it is never examined. The idle limit never
// stops a tree that works all the time. A tree that neither prints nor works is stopped when the idle limit has passed,
// never earlier, and at most a quarter of the limit later, because its last work may be noticed late. If the limit
// expires on a machine too busy to have examined the tree in time, the decision waits for the next examination, for a
// quarter of the limit or 2 s, whichever is longer. If the total limit expires meanwhile, the outcome is a total
// timeout.
//
// The package documentation says what is measured with each containment, and that starting small programs is not work
// on Linux. On systems other than Linux and Windows, Start returns an error that wraps [errors.ErrUnsupported] if CPU
// or IO is set. If CPURate is negative, infinite or not a number, Start returns a [*timeout.ConfigError].
type Activity struct {
	// CPU selects processor time, with a minimum of CPURate.
	CPU bool
	// CPURate is the minimum of the processor time, in cores: 0.5 means half a core, and 0 means 0.01. A negative,
	// infinite or NaN CPURate is an error, even if CPU is not set.
	CPURate float64
	// IO selects bytes that are read and written, with a minimum of 64 KiB per second, and on Linux also bytes that TCP
	// connections carry, with a minimum of 8 KiB per second.
	IO bool
}

// isSet reports whether a selects any kind of work.
func (a *Activity) isSet() bool { return a.CPU || a.IO }

// Check returns the error that [Start] and [Observe] return for a if CPURate is invalid, or if the system cannot
// measure the selected work, and otherwise nil.
func (a Activity) Check() error {
	if a.CPURate < 0 || math.IsNaN(a.CPURate) || math.IsInf(a.CPURate, 0) {
		return &timeout.ConfigError{Key: "Activity.CPURate", Value: fmt.Sprint(a.CPURate), Accepted: "a positive number, or 0 for the default"}
	}
	if !a.isSet() {
		return nil
	}
	if err := work.CanMeter(a.IO); err != nil {
		return fmt.Errorf("procgroup: Activity: %w", err)
	}
	return nil
}
