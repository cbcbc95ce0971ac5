package proctree

import (
	"os"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"golang.org/x/sys/unix"
)

// A process that is made with CLONE_PARENT is a child of its maker's parent: if the command makes it, of this
// process. So is a process that has lost its parent, if this process is a subreaper or process 1. Such children
// have to be reaped here, and only they, because the other children belong to the caller. The control group
// tells them apart, even after they have ended and it is removed. Without one they are known as other members
// are: by the cookie, as long as they live, and by the group of the leader. So a child that has left the group, and
// has ended before any look at it, stays a zombie.

// reapAdopted reaps the members that were seen to be children of this process. They have been
// killed, and are given until the deadline to be gone.
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

// reapChild reaps a child of this process if it has ended, and reports whether nothing is left of it to reap.
func reapChild(key procfs.Key) bool {
	// The child may have been reaped elsewhere, and its id may now be that of a child that the caller has started.
	if p := procfs.StatusOf(key.PID); !p.SameAs(key) || p.Parent != os.Getpid() {
		return p.Known
	}
	pid, err := unix.Wait4(key.PID, nil, unix.WNOHANG, nil)
	return pid == key.PID || err == unix.ECHILD
}
