package proctree

import (
	"errors"
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
// descriptor identifies the leader and its process group.
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
}

// gone reports whether no process of the tree is left. It returns false if the system does not show that now. A process
// group that can no longer be identified counts as empty.
func (a *attached) gone() bool {
	if err := a.leader.signalGroup(0); err != unix.ESRCH && err != unix.EINVAL {
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
			_ = a.leader.signalGroup(unix.SIGKILL)
			if a.others != nil {
				a.others.sweep(time.Now().Add(reapTime))
			}
			return
		}
	}
}
