package procgroup

import (
	"fmt"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Resources limits the memory, number and processor time of all processes of a command together. It is an [Option]. A
// field of 0 means no limit. A control group (version 2) on Linux enforces the limits, and is then the containment; if
// another [Containment] is selected, the limits are not available.
//
// If one of the limits is not available, Start returns an error that says why and wraps [errors.ErrUnsupported], unless
// BestEffort is set. The controllers memory, pids and cpu must be available to this program, and it must be allowed to
// enable them for control groups that it makes. The system does not allow that in a group that has processes, except in
// the root group. So the program must run in a subgroup of a group that was delegated to it, and the delegated group
// must have no processes itself. With systemd, set Delegate=yes and DelegateSubgroup=. In a container, the program must
// move itself to a subgroup before it starts the first command.
//
// Start returns a [*timeout.ConfigError] for a negative field, for a CPU that is neither 0 nor from 0.01 to 10000, and
// for a Memory from 1 to 4095.
type Resources struct {
	// Memory is the memory that the processes may use, in bytes. When they need more, and the system can free none, it
	// kills one of them; see [OutOfMemory]. They get no swap space.
	Memory int64
	// Processes is the number of processes that may exist at once. Threads count as processes. When that many exist,
	// starting another one fails.
	Processes int
	// CPU is the number of processors that the processes may use: 0.5 means half a processor. Processes that need more
	// have to wait. The minimum is 0.01, the maximum 10000.
	CPU float64
	// BestEffort starts the command without the limits that the system does not offer. A Memory in which no process can
	// be started is an error nevertheless. [Result.Resources] contains the limits in force.
	BestEffort bool
}

// check returns a [*timeout.ConfigError] for an invalid field.
func (r *Resources) check() error {
	switch {
	case r.Memory < 0 || r.Memory > 0 && r.Memory < 4096:
		return &timeout.ConfigError{Key: "Resources.Memory", Value: fmt.Sprint(r.Memory), Accepted: "a number of bytes from 4096, or 0 for no limit"}
	case r.Processes < 0:
		return &timeout.ConfigError{Key: "Resources.Processes", Value: fmt.Sprint(r.Processes), Accepted: "a number of processes, or 0 for no limit"}
	case r.CPU != 0 && !(r.CPU >= 0.01 && r.CPU <= 10_000): // NaN is neither
		return &timeout.ConfigError{Key: "Resources.CPU", Value: fmt.Sprint(r.CPU), Accepted: "a number of processors from 0.01 to 10000, or 0 for no limit"}
	}
	return nil
}

// limits converts r for package proctree.
func (r *Resources) limits() proctree.Limits {
	return proctree.Limits{Memory: r.Memory, Processes: int64(r.Processes), CPU: r.CPU, BestEffort: r.BestEffort}
}

// resourcesOf converts l, the limits in force, for the Result.
func resourcesOf(l proctree.Limits) Resources {
	return Resources{Memory: l.Memory, Processes: int(l.Processes), CPU: l.CPU}
}
