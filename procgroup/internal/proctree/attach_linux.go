package proctree

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"golang.org/x/sys/unix"
)

// Attach makes cmd.Cancel send stop to the tree and, after grace, kill what is left of it; with a grace of 0 it kills
// the tree at once. Call Attach before cmd.Start. os/exec may reap the leader at any time, after which only its
// descriptor identifies the leader. Its process group is then identified by the descriptor or, where the kernel cannot
// signal a group by a descriptor, by its members.
func Attach(cmd *exec.Cmd, kind Kind, stop syscall.Signal, grace time.Duration) (time.Duration, error) {
	if kind != Auto && kind != Group && kind != Descendants {
		return 0, unavailable(kind, unsupported("not with Attach"))
	}
	if err := ownGroup(cmd); err != nil {
		return 0, err
	}
	var cookie string
	if kind != Group && procfs.Works() {
		cookie = setCookie(cmd)
	} else if kind == Descendants {
		return 0, unavailable(kind, unsupported("/proc does not show the processes of this process id namespace"))
	}
	cmd.Cancel = func() error {
		a := &attached{leader: &leader{pid: cmd.Process.Pid, fd: openPidfd(cmd.Process.Pid)}}
		// This must follow the opening of the descriptor: if the process has not been reaped by now, the descriptor
		// refers to it, and not to a later process with the same id.
		if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
			a.leader.close()
			return os.ErrProcessDone
		}
		a.noteMembers(cmd.Process)
		var err error
		switch {
		case cookie != "" && !slices.ContainsFunc(cmd.Env, func(v string) bool { return strings.Contains(v, cookie) }):
			err = errors.New("procgroup: cmd.Env was assigned after Attach, so that only the process group is ended")
		case cookie != "":
			a.others = &descendants{leader: a.leader, cookie: cookie, reaped: true}
		}
		if grace > 0 {
			_ = a.leader.signalGroup(stop)
			_ = a.leader.signalGroup(unix.SIGCONT)
			if a.others != nil {
				a.others.signal(stop, unix.SIGCONT)
			}
		} else {
			_ = a.leader.signalGroup(unix.SIGKILL)
		}
		a.leader.reaped = a.leader.fd == nil // from now on the group's id may be reused
		go a.finish(time.Now().Add(grace))
		return err
	}
	return grace, nil
}

// An attached is the tree of an Attach, whose leader os/exec waits for and reaps.
type attached struct {
	leader *leader
	others *descendants
	// members has the processes that were seen in the group. It is nil if the leader's descriptor can signal the group.
	// While one of them is left in the group, no other group can have its id.
	members map[procfs.Key]bool
}

// noteMembers sets a.members, unless the leader p has been reaped.
func (a *attached) noteMembers(p *os.Process) {
	if a.leader.fd != nil {
		_ = a.leader.fd.signalGroup(0) // makes canAskGroup right
	}
	if a.leader.canAskGroup() || !procfs.Works() {
		return
	}
	found, _ := a.inGroup()
	if p.Signal(syscall.Signal(0)) == nil { // the group's id was not reused before the look
		a.members = found
	}
}

// inGroup returns the processes with the id of the group, zombies included. complete is false if there may be others.
func (a *attached) inGroup() (found map[procfs.Key]bool, complete bool) {
	all, complete := tableNow()
	found = make(map[procfs.Key]bool)
	for i := range all {
		if all[i].Group == a.leader.pid {
			found[all[i].Key()] = true
		}
	}
	return found, complete && len(all) > 0
}

// signalGroup is like leader.signalGroup, but if the leader has been reaped, it finds the group by its members. It
// returns EAGAIN if the system does not show these now.
func (a *attached) signalGroup(sig unix.Signal) error {
	err := a.leader.signalGroup(sig)
	if err != unix.EINVAL || a.members == nil {
		return err
	}
	found, complete := a.inGroup()
	for key := range found {
		if a.members[key] {
			maps.Copy(a.members, found)
			return unix.Kill(-a.leader.pid, sig)
		}
	}
	if !complete {
		return unix.EAGAIN
	}
	return unix.EINVAL
}

// gone reports whether no process of the tree is left. It returns false if the system does not show that now. A process
// group that can no longer be identified counts as empty.
func (a *attached) gone() bool {
	if err := a.signalGroup(0); err != unix.ESRCH && err != unix.EINVAL {
		return false // a zombie counts as a member too, so this may last for all of the grace
	}
	if a.others != nil {
		found, unsure, ok := a.others.members()
		return len(found) == 0 && len(unsure) == 0 && ok
	}
	return true
}

// finish waits until the tree is gone, and kills the processes that are left at the deadline.
func (a *attached) finish(deadline time.Time) {
	defer a.leader.close()
	for b := patient.Backoff(0); !a.gone(); {
		if !b.Sleep(deadline) {
			if a.signalGroup(unix.SIGKILL) == unix.EAGAIN {
				for key := range a.members {
					signalProc(key, unix.SIGKILL)
				}
			}
			if a.others != nil {
				a.others.sweep(time.Now().Add(reapTime))
			}
			return
		}
	}
}
