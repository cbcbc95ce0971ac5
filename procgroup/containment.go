package procgroup

import (
	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A Containment selects how the processes that a command has started are found and killed. On Unix each Containment
// also covers the processes of Group. The zero Containment means the best one that the system offers without
// preparation: Cgroup or Descendants on Linux, Job on Windows, Group on macOS and the BSDs. A Containment is an
// [Option]. If the system does not offer it, Start returns an error that wraps [errors.ErrUnsupported]; if its name is
// unknown, Start returns a [*timeout.ConfigError].
//
// [Result.Contained] is "leader" on a system that offers no Containment; only the command's own process is then killed.
type Containment string

const (
	// Group covers the process group of the command. A process that moves to another group, as daemons do with setsid,
	// escapes.
	Group Containment = "group"
	// Descendants also covers processes outside the group. It finds them by their parents, and by an environment
	// variable that children inherit. It needs Linux and /proc. A process escapes if its parents have ended and its
	// environment has been cleared, overwritten (as setproctitle does) or made unreadable. Processes of other users
	// escape too, unless the host runs as root. [Result.Unidentified] lists a process that escapes only if it shows no
	// environment at all.
	Descendants Containment = "descendants"
	// Cgroup runs each command in its own control group (version 2), on Linux. It needs permission to create a control
	// group below the control group of the host. Only a process that has the privilege to move itself to another
	// control group escapes.
	Cgroup Containment = "cgroup"
	// Helper runs the command below a helper process, a child of the host, which is the program that calls Start. The
	// helper adopts all descendants of the command, and kills them if the host dies, even by SIGKILL. The host's main
	// function must call [HelperMain]. If the command stops the helper with SIGSTOP, the end of the command is not
	// noticed until a limit or an abort continues the helper. Linux only.
	Helper Containment = "helper"
	// HelperTree works like Helper, and is for launchers: a command that has ended with the exit code 0 counts as
	// running, under its limits, until the last of the processes that it has started has ended. Linux only.
	HelperTree Containment = "helper-tree"
	// Job runs each command in a job object, on Windows.
	Job Containment = "job"
)

// kind returns the containment of package proctree with the same name. The error is a [*timeout.ConfigError].
func (c Containment) kind() (proctree.Kind, error) {
	if c == "" {
		return proctree.Auto, nil
	}
	for k := proctree.Leader; k <= proctree.Job; k++ {
		if string(c) == k.String() {
			return k, nil
		}
	}
	return 0, &timeout.ConfigError{Key: "Containment", Value: string(c), Accepted: "group, descendants, cgroup, helper, helper-tree, job, or nothing for the best available"}
}

// HelperMain supports the containments [Helper] and [HelperTree]. A program that uses them must call HelperMain first
// in main, or in TestMain; otherwise Start returns an error that wraps [errors.ErrUnsupported].
//
//	func main() {
//		procgroup.HelperMain()
//		...
//	}
//
// For each command the program is started once more, as the helper. In the helper, HelperMain starts the command and
// does not return. In the program itself HelperMain only records that it was called. Package initialization, including
// init functions, runs in the helper as well. On systems other than Linux HelperMain does nothing.
func HelperMain() { proctree.HelperMain() }
