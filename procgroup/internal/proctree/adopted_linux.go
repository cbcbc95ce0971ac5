package proctree

import (
	"os"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"golang.org/x/sys/unix"
)

// A member other than the leader can be a child of this process: the leader has created it with CLONE_PARENT, or its
// parent has ended and this process is a subreaper or process 1. This process must reap such members, and no other
// children, which belong to the caller. A control group identifies them, even after they have ended and the group is
// removed. Without a control group, the cookie identifies them while they live, and the leader's process group at any
// time. So a member that has left the process group, and ends before a look has found it, stays a zombie.

// reapAdopted reaps the members in d.adopted, which have been killed. It waits for them to end, until the deadline, and
// holds d.mu meanwhile.
func (d *descendants) reapAdopted(deadline time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for b := patient.Backoff(0); ; {
		for key := range d.adopted {
			if reapChild(key) {
				delete(d.adopted, key)
			}
		}
		if len(d.adopted) == 0 || !b.Sleep(deadline) {
			return
		}
	}
}

// reapChild reaps a child of this process if it has ended. It returns false if the child is still alive, or if its
// state cannot be read in time, and true if there is nothing left to reap.
func reapChild(key procfs.Key) bool {
	// If other code has reaped the child, its id may now belong to a child that the caller has started.
	if p := procfs.StatusOf(key.PID); !p.SameAs(key) || p.Parent != os.Getpid() {
		return p.Known
	}
	pid, err := unix.Wait4(key.PID, nil, unix.WNOHANG, nil)
	return pid == key.PID || err == unix.ECHILD
}
