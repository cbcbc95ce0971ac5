package proctree

import (
	"errors"
	"fmt"
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
// the tree at once. Call Attach before cmd.Start. os/exec may reap the leader at any time, after which the id of its
// process group may be that of another group; see groupPin.
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
		pid := cmd.Process.Pid
		pin, pinErr := pinGroup(pid)
		// This must follow pinGroup: if the process has not been reaped by now, the pin refers to its group, and not to
		// a later group with the same id.
		if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
			pin.close()
			return os.ErrProcessDone
		}
		a := &attached{pid: pid, pin: pin}
		var err error
		if pinErr != nil && grace > 0 {
			err = fmt.Errorf("procgroup: the process group is not killed after the grace: %w", pinErr)
		}
		switch {
		case cookie == "":
		case !slices.ContainsFunc(cmd.Env, func(v string) bool { return strings.Contains(v, cookie) }):
			err = errors.New("procgroup: cmd.Env was assigned after Attach, so that only the process group is ended")
		default:
			a.others = &descendants{leader: &leader{pid: pid}, cookie: cookie, reaped: true}
		}
		if grace > 0 {
			_ = unix.Kill(-pid, stop)
			_ = unix.Kill(-pid, unix.SIGCONT)
			if a.others != nil {
				a.others.signal(stop, unix.SIGCONT)
			}
		} else {
			_ = unix.Kill(-pid, unix.SIGKILL)
		}
		go a.finish(time.Now().Add(grace))
		return err
	}
	return grace, nil
}

// An attached is the tree of an Attach, whose leader os/exec waits for and reaps.
type attached struct {
	pid    int // of the leader, and of its group until that is empty
	pin    groupPin
	others *descendants // nil if only the group is ended
}

// gone reports whether no process of the tree is left. It returns false if the system does not show that now, or if
// another group has got the id.
func (a *attached) gone() bool {
	if unix.Kill(-a.pid, 0) != unix.ESRCH {
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
	defer a.pin.close()
	for b := patient.Backoff(0); !a.gone(); {
		if !b.Sleep(deadline) {
			a.pin.kill()
			if a.others != nil {
				a.others.sweep(time.Now().Add(reapTime))
			}
			return
		}
	}
}

// A groupPin refers to one process group, and never to a later one with the same id. It is a pair of connected sockets,
// the first of which has the group as its owner, to which the kernel sends SIGKILL when something is written to the
// second: of an owner the kernel keeps the group itself, and not its id. pidfd_send_signal(2) can do the same, but only
// from Linux 6.9 on. They are datagram sockets because the end of this program, which closes both, must kill nothing:
// the kernel tells the owner that the other end of a pipe or a stream is closed by the same signal.
type groupPin struct{ owned, other int }

// pinGroup pins the group with an id. If it returns an error, the methods of the pin do nothing.
func pinGroup(pgid int) (p groupPin, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return groupPin{}, os.NewSyscallError("socketpair", err)
	}
	p = groupPin{fds[0], fds[1]}
	for _, set := range [][2]int{{unix.F_SETOWN, -pgid}, {unix.F_SETSIG, int(unix.SIGKILL)}, {unix.F_SETFL, unix.O_ASYNC | unix.O_NONBLOCK}} {
		if _, err := unix.FcntlInt(uintptr(p.owned), set[0], set[1]); err != nil {
			p.close()
			return groupPin{}, os.NewSyscallError("fcntl", err)
		}
	}
	return p, nil
}

// kill kills the group, unless it is empty.
func (p groupPin) kill() {
	if p != (groupPin{}) {
		_, _ = unix.Write(p.other, []byte{0})
	}
}

func (p groupPin) close() {
	if p != (groupPin{}) {
		unix.Close(p.owned)
		unix.Close(p.other)
	}
}
