package procgroup

import "github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"

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

// String returns "auto", "leader", "group", "descendants", "cgroup", "helper" or "job".
func (c Containment) String() string { return proctree.Kind(c).String() }

// HelperMain must be the first thing in main, or in TestMain, of a program that uses the
// [Helper] containment. In the program itself it does nothing but remember that it was
// called. For each command the program is started once more; in that process HelperMain
// starts the command, and does not return.
//
//	func main() {
//		procgroup.HelperMain()
//		...
//	}
//
// What the program does in init functions and for package variables happens in the helper
// too. Where the system has no such containment, HelperMain does nothing.
func HelperMain() { proctree.HelperMain() }
