package proctree

import (
	"os/exec"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// Members lists the members, without the helper, for package waits. It lists none if they cannot be known. It is whole if
// a member that has left the process group is still seen.
func (t *linuxTree) Members() (members []procfs.Process, whole bool) {
	whole = t.cgroup != nil || t.others != nil
	var all []proc
	var complete bool
	if t.cgroup != nil {
		var pids []int
		listed := t.cgroup.Each(func(pid int) { pids = append(pids, pid) })
		all, complete = statuses(t.patience(fullPatience), pids, always)
		complete = complete && listed
	} else {
		all, complete = t.look()
		all = t.membersOf(all)
	}
	if !complete {
		return nil, whole
	}
	for _, p := range all {
		if t.cgroup != nil || t.helper == nil || p.PID != t.pid {
			members = append(members, p.Process)
		}
	}
	return members, whole
}

// Patience returns the bound of one look of package waits.
func (t *linuxTree) Patience() *procfs.Patience { return t.patience(viewPatience) }

// HasTerminal reports whether a command that was started may have the terminal of this process.
func HasTerminal(cmd *exec.Cmd) bool { return !cmd.SysProcAttr.Setsid }
