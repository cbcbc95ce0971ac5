package procgroup

import (
	"cmp"
	"fmt"
	"math"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/work"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// An Activity selects the work of a command's processes that counts as a sign of life, in addition to output. It is
// an [Option]. The zero Activity selects none. With it a compiler that prints nothing is not taken for stuck. Each
// kind of work counts from a rate on, measured over the whole process tree.
//
// The tree is examined six times per idle limit (the smallest among those of the command's execution and the
// enclosing executions), and only while there is no output. Without an idle limit it is never examined. The idle
// limit never stops a tree that works all the time. A tree that neither prints nor works is stopped when the idle
// limit has passed, never earlier, and at most a quarter of the limit later, because its last work may be noticed
// late. If the limit expires on a machine too busy to have examined the tree in time, the decision waits for the
// next examination, for a quarter of the limit or 2 s, whichever is longer. If the total limit expires meanwhile,
// the outcome is a total timeout.
//
// The page of the package says what is measured, in which containment, and that starting small programs is not work
// on Linux. On systems other than Linux and Windows, Start returns an error that wraps [errors.ErrUnsupported]. If
// CPURate is negative or not a number, it returns a [*timeout.ConfigError].
type Activity struct {
	// CPU selects processor time, from CPURate on: a fraction of one core, 0 means 0.01.
	CPU     bool
	CPURate float64
	// IO selects bytes read and written, from 64 KiB a second on, and, on Linux, bytes carried by TCP connections, from 8
	// KiB a second on.
	IO bool
}

// isSet reports whether a selects any kind of work.
func (a *Activity) isSet() bool { return a.CPU || a.IO }

// Check returns the error that [Start] and [Observe] would return for a: a rate is invalid,
// or the system cannot measure the work. It returns nil if a can be used.
func (a Activity) Check() error { return a.check() }

// check implements Check, and sets the default rate.
func (a *Activity) check() error {
	if a.CPURate < 0 || math.IsNaN(a.CPURate) || math.IsInf(a.CPURate, 0) {
		return &timeout.ConfigError{Key: "Activity.CPURate", Value: fmt.Sprint(a.CPURate), Accepted: "a positive number, or 0 for the default"}
	}
	a.CPURate = cmp.Or(a.CPURate, work.DefaultCPURate)
	if !a.isSet() {
		return nil
	}
	if err := work.CanMeter(a.IO); err != nil {
		return fmt.Errorf("procgroup: Activity: %w", err)
	}
	return nil
}
