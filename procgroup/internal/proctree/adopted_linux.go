package proctree

import (
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"golang.org/x/sys/unix"
)

// A process that is made with CLONE_PARENT is a child of its maker's parent: if the command makes it, of this
// process. So is a process that has lost its parent, if this process is a subreaper or process 1. Such children
// have to be reaped here, and only they, because the other children belong to the caller. The control group
// tells them apart, even after they have ended and it is removed. Without one they are known as other members
// are: by the cookie, as long as they live, and by the group of the leader. So a child that has left the group, and
// has ended before any look at it, stays a zombie.

// reapAdopted reaps the children of this process, but for the leader, that are or were in c. Those that have
// been killed are given until the deadline to be gone. A child that ends by itself at this very moment is missed,
// and stays a zombie: the kernel has taken it out of c, and no wait returns it yet. Finding it would take a look at
// all children after each command.
func (c *cgroup) reapAdopted(deadline time.Time) {
	// Nearly always there are none, and it takes a single call to know.
	var info unix.Siginfo
	err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	if !c.adopting && (err != nil || info.Signo == 0) {
		return
	}
	for b := backoff(0); ; {
		dying := false
		for _, pid := range children() {
			if pid == c.leader || !c.has(pid) {
				continue
			}
			if p := statusOf(pid); !p.known || p.there && !p.Dead() {
				dying = true
				continue
			}
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
		if !dying || !b.sleep(deadline) {
			return
		}
	}
}

// noteAdopted remembers p, a member, if it is a child of this process, but for the leader.
func (d *descendants) noteAdopted(p *proc) {
	if p.Parent != os.Getpid() || p.PID == d.leader.pid {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.adopted == nil {
		d.adopted = make(map[procfs.Key]bool)
	}
	d.adopted[p.Key()] = true
}

// reapAdopted reaps the members that were seen to be children of this process. They have been
// killed, and are given until the deadline to be gone.
func (d *descendants) reapAdopted(deadline time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for b := backoff(0); ; {
		for key := range d.adopted {
			if reapChild(key) {
				delete(d.adopted, key)
			}
		}
		if len(d.adopted) == 0 || !b.sleep(deadline) {
			return
		}
	}
}

// reapChild reports whether there is nothing more to reap of a child of this process.
func reapChild(key procfs.Key) bool {
	// It may have been reaped elsewhere, and its id be that of a child that the caller has started.
	if p := statusOf(key.PID); !p.sameAs(key) || p.Parent != os.Getpid() {
		return p.known
	}
	pid, err := unix.Wait4(key.PID, nil, unix.WNOHANG, nil)
	return pid == key.PID || err == unix.ECHILD
}

// hasAdopted reports whether there is a child of this process in c besides the leader.
func (c *cgroup) hasAdopted() (found bool) {
	all, _ := statuses(procfs.NewPatience(quickPatience), c.pids(), always)
	return slices.ContainsFunc(all, func(p proc) bool { return p.Parent == os.Getpid() && p.PID != c.leader })
}

// has reports whether a process is or, if it has ended, was in c or below.
func (c *cgroup) has(pid int) bool {
	in, _ := procfs.Ask(procfs.NewPatience(quickPatience), func(r *procfs.Reader) bool { return r.InCgroup(pid, filepath.Base(c.dir)) })
	return in
}

// children lists the children of this process.
func children() []int {
	pids, ok := procfs.OwnChildren()
	if !ok {
		all, _ := list()
		for _, p := range all {
			if p.Parent == os.Getpid() {
				pids = append(pids, p.PID)
			}
		}
	}
	return pids
}
