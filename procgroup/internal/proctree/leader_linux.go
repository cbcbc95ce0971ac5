package proctree

import (
	"context"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// A leader is the process that was started: the command, or its helper. It leads a process group.
type leader struct {
	cmd             *exec.Cmd // nil if the caller waits for the process
	pid             int
	fd              *pidfd        // nil if openPidfd has returned nil
	gone            chan struct{} // used if fd is nil: closed when the leader has ended
	reapedElsewhere bool          // other code has reaped the leader; set before gone is closed
	ended           bool          // wait has returned true
	reaped          bool          // reap has reaped the leader
	err             error         // of cmd.Wait, once reaped
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

// waitUnreaped waits until a child has ended, and leaves it a zombie. It returns ECHILD if other code has reaped the
// child. It occupies a thread.
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

// wait implements Tree.Wait. Once the leader has ended, it returns true at once.
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
		// The deadline must be set before ctx is checked: if ctx ends after the check, the deadline that the AfterFunc
		// sets ends the wait below. The AfterFunc of an earlier await may run late; that costs one more round.
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

// lost reports whether other code has reaped the leader: the kernel, if the host ignores SIGCHLD, or os/exec, after
// Watch. From then on its id may belong to another process.
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

// signalGroup sends sig to the leader's process group. It returns ESRCH if the group is empty; a zombie counts as a
// member. It returns EINVAL if only the id identifies the group, and the id may have been reused.
func (l *leader) signalGroup(sig unix.Signal) error {
	if l.fd != nil {
		if err := l.fd.signalGroup(sig); err != unix.EINVAL {
			return err
		}
	}
	if l.reaped || l.lost() {
		return unix.EINVAL
	}
	return unix.Kill(-l.pid, sig)
}

// canAskGroup reports whether signalGroup still works after the leader is reaped.
func (l *leader) canAskGroup() bool { return l.fd != nil && !noGroupSignal.Load() }

// reap reaps the leader, unless it has done so before, and sets err. It blocks if the leader has not ended.
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
