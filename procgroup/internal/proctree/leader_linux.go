package proctree

import (
	"context"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// A leader is the process that was started. It leads a process group.
type leader struct {
	cmd             *exec.Cmd
	pid             int
	fd              *pidfd        // nil if the system has none
	gone            chan struct{} // without fd: closed when it has ended, after reapedElsewhere has been set
	reapedElsewhere bool          // somebody else has reaped it
	ended           bool          // wait has seen it
	reaped          bool
	err             error // of cmd.Wait, once reaped
}

func newLeader(cmd *exec.Cmd) *leader {
	l := &leader{cmd: cmd, pid: cmd.Process.Pid}
	if l.fd = openPidfd(l.pid); l.fd == nil {
		l.gone = make(chan struct{})
		go func() {
			defer close(l.gone)
			l.reapedElsewhere = waitUnreaped(l.pid) == unix.ECHILD
		}()
	}
	return l
}

// waitUnreaped waits for the end of a process, and does not reap it. It takes up a thread.
func waitUnreaped(pid int) error {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err
		}
	}
}

var longAgo = time.Unix(1, 0)

// wait implements Tree.Wait.
func (l *leader) wait(ctx context.Context, deadline time.Time) bool {
	l.ended = l.ended || l.await(ctx, deadline)
	return l.ended
}

func (l *leader) await(ctx context.Context, deadline time.Time) bool {
	if l.fd == nil {
		return waitFor(ctx, l.gone, deadline)
	}
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() { _ = l.fd.f.SetReadDeadline(longAgo) })
		defer stop()
	}
	for {
		// The deadline must be set before ctx is checked: if ctx ends in between, the deadline that the
		// AfterFunc sets stays. One that the AfterFunc of an earlier wait sets late only costs a round.
		if err := l.fd.f.SetReadDeadline(deadline); err != nil {
			return true
		}
		if ctx.Err() != nil || (!deadline.IsZero() && !time.Now().Before(deadline)) {
			ended, _ := l.fd.exited()
			return ended
		}
		if l.fd.wait() == nil {
			return true
		}
	}
}

// lost reports whether the leader was reaped elsewhere: by the kernel, if the host ignores SIGCHLD, or by the
// caller of Attach. From then on its id may be that of another process.
func (l *leader) lost() bool {
	if l.fd != nil {
		_, err := l.fd.exited()
		return err == unix.ECHILD
	}
	select {
	case <-l.gone:
		return l.reapedElsewhere
	default:
		return false
	}
}

// signalGroup signals the group. It returns ESRCH if the group is empty, where a zombie is a member, and EINVAL if the
// id may be that of another group by now.
func (l *leader) signalGroup(sig unix.Signal) error {
	if l.fd != nil {
		if err := l.fd.signalGroup(sig); err != unix.EINVAL {
			return err
		}
	}
	if l.reaped || l.lost() {
		return unix.EINVAL // the id may be that of another group
	}
	return unix.Kill(-l.pid, sig)
}

// canAskGroup reports whether signalGroup works once the leader is reaped.
func (l *leader) canAskGroup() bool { return l.fd != nil && !noGroupSignal.Load() }

// reap reaps the leader, which has ended, and keeps its exit status.
func (l *leader) reap() {
	if !l.reaped {
		l.err = l.cmd.Wait()
		l.reaped = true
	}
}

func (l *leader) close() {
	if l.fd != nil {
		l.fd.close()
	}
}
