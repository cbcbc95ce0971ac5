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

// quickPatience is how long a look waits for processes that are slow to show what they are.
const quickPatience = 10 * time.Millisecond

// ReapAdopted reaps the children of this process, but for the leader, that are or were in c. Those that have
// been killed are given until the deadline to be gone. A child that ends by itself at this very moment is missed,
// and stays a zombie: the kernel has taken it out of c, and no wait returns it yet. Finding it would take a look at
// all children after each command.
func (c *Group) ReapAdopted(deadline time.Time) {
	// Nearly always there are none, and it takes a single call to know.
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

// hasAdopted reports whether there is a child of this process in c besides the leader. The kill waits for it, so
// that all of them together have the patience of one look.
func (c *Group) hasAdopted() (found bool) {
	return slices.ContainsFunc(childrenAmong(c.PIDs()), func(pid int) bool { return pid != c.leader })
}

// contains reports whether a process is or, if it has ended, was in c or below.
func (c *Group) contains(pid int) bool {
	in, _ := procfs.Ask(procfs.NewPatience(quickPatience), func(r *procfs.Reader) bool { return r.InCgroup(pid, filepath.Base(c.dir)) })
	return in
}

// children lists the children of this process.
func children() []int {
	if pids, ok := procfs.OwnChildren(); ok {
		return pids
	}
	pids, _ := procfs.Ask(procfs.NewPatience(quickPatience), func(r *procfs.Reader) []int { return slices.Clone(r.PIDs()) })
	return childrenAmong(pids)
}

// childrenAmong returns the ids in pids that are of children of this process, as far as that is shown in time.
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
