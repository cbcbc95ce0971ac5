package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"golang.org/x/sys/unix"
)

// quickPatience bounds the time that one look waits for slow reads of /proc.
const quickPatience = 10 * time.Millisecond

// ReapAdopted reaps the children of this process that are or were in c, except for the leader, and waits until the
// deadline for those that have not ended. It returns at once if Kill has found no such child and this process has no
// zombie. So it can miss a child that ends by itself during the call, which stays a zombie. To find that child, it
// would have to look at all children after each command.
func (c *Group) ReapAdopted(deadline time.Time) {
	// Usually there is no zombie, and this call is enough.
	var info unix.Siginfo
	err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	if !c.adopting && (err != nil || info.Signo == 0) {
		return
	}
	for b := patient.Backoff(0); ; {
		dying := false
		for _, pid := range children() {
			if pid == c.leader || !c.contains(pid) {
				continue
			}
			if p := procfs.StatusOf(pid); !p.Known || p.There && !p.Dead() {
				dying = true
				continue
			}
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
		if !dying || !b.Sleep(deadline) {
			return
		}
	}
}

// hasAdopted reports whether c contains a child of this process other than the leader. Kill waits for hasAdopted, which
// therefore takes quickPatience at most, however many processes there are.
func (c *Group) hasAdopted() (found bool) {
	return slices.ContainsFunc(childrenAmong(c.PIDs()), func(pid int) bool { return pid != c.leader })
}

// contains reports whether a process is in c or below or, if it is a zombie, was there when it ended. It returns false
// if that cannot be read in time.
func (c *Group) contains(pid int) bool {
	in, _ := procfs.Ask(procfs.NewPatience(quickPatience), func(r *procfs.Reader) bool { return r.InCgroup(pid, filepath.Base(c.dir)) })
	return in
}

// children lists the children of this process, as far as they can be read in time.
func children() []int {
	if pids, ok := procfs.OwnChildren(); ok {
		return pids
	}
	pids, _ := procfs.Ask(procfs.NewPatience(quickPatience), func(r *procfs.Reader) []int { return slices.Clone(r.PIDs()) })
	return childrenAmong(pids)
}

// childrenAmong returns the ids in pids that belong to children of this process. It leaves out processes that cannot be
// read in time.
func childrenAmong(pids []int) (children []int) {
	self := os.Getpid()
	is, _ := procfs.Gather(procfs.NewPatience(quickPatience), len(pids), func(r *procfs.Reader, i int) bool {
		p, there := r.Process(pids[i])
		return there && p.Parent == self
	})
	for i, pid := range pids {
		if is[i] {
			children = append(children, pid)
		}
	}
	return children
}
