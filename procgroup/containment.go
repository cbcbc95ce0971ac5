package procgroup

import (
	"errors"
	"fmt"
	"strconv"
)

// A Containment is a way to find and kill everything that a command has started. Each
// one includes what Group does.
type Containment int

const (
	// Auto takes the best that the system offers without being prepared for it: Cgroup
	// or Descendants on Linux, Job on Windows, Group elsewhere.
	Auto Containment = iota
	// Leader is the process alone. It is never chosen where there is anything better.
	Leader
	// Group is the process group of the command. What moves to another one, as daemons
	// do with setsid, escapes.
	Group
	// Descendants finds those too, on Linux with /proc: by a variable in the environment
	// that children inherit, and by their parents. What outlives its parents and has
	// cleared its environment, overwritten it (as setproctitle does) or made itself
	// unreadable escapes, and so does what another user runs, unless the host is root. See
	// Result.Unidentified.
	Descendants
	// Cgroup is a control group (version 2) for each command, where the host may create
	// one below its own. Nothing escapes but what has the privilege to move itself to
	// another control group.
	Cgroup
	// Helper is a process between the host and the command that adopts every descendant,
	// and kills them all when the host dies, even of SIGKILL. The host's main must call
	// [HelperMain]. A command that stops it, with SIGSTOP, is seen to end only when a limit
	// or an abort has it continued. Linux only.
	Helper
	// Job is a job object, on Windows.
	Job
)

// String gives "auto", "leader", "group", "descendants", "cgroup", "helper" or "job".
func (c Containment) String() string {
	switch c {
	case Auto:
		return "auto"
	case Leader:
		return "leader"
	case Group:
		return "group"
	case Descendants:
		return "descendants"
	case Cgroup:
		return "cgroup"
	case Helper:
		return "helper"
	case Job:
		return "job"
	}
	return "Containment(" + strconv.Itoa(int(c)) + ")"
}

// unavailable is the error for a containment that was asked for by name.
func unavailable(c Containment, why error) error {
	return fmt.Errorf("procgroup: containment %v: %w", c, why)
}

// unsupported is a reason for unavailable.
func unsupported(why string) error { return fmt.Errorf("%s (%w)", why, errors.ErrUnsupported) }
