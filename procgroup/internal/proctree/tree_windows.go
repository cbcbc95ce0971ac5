package proctree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

// A jobTree is a Tree of the job object to which the leader was assigned before it ran, or of the leader alone if there
// is no job object.
type jobTree struct {
	blind // it cannot be asked for stacks, and needs no reads that can block
	waited
	pid     int
	handle  windows.Handle // of the leader; while it is open, the leader's id is not reused
	console bool           // the leader shares the console of the host, if the host has one
	job     *job           // nil with the containment Leader
}

func Start(_ context.Context, cmd *exec.Cmd, want Kind) (Tree, error) {
	t := &jobTree{waited: waited{cmd: cmd}}
	switch want {
	case Auto, Job:
		var err error
		if t.job, err = newJob(); err != nil && want == Job {
			return nil, unavailable(want, errors.Join(unsupported("no job object can be made"), err))
		}
	case Leader:
	default:
		return nil, unavailable(want, unsupported("not on Windows"))
	}
	t.console = ownGroup(cmd)
	if err := startSuspended(cmd, func() error { return t.admit(want) }); err != nil {
		t.Close()
		return nil, err
	}
	t.begin()
	return t, nil
}

// admit assigns the leader to the job. The leader is suspended, so it has started no process yet. If the job cannot be
// used, admit returns an error if want is Job, and otherwise removes the job.
func (t *jobTree) admit(want Kind) (err error) {
	t.pid = t.cmd.Process.Pid
	if t.handle, err = openProcess(t.pid); err != nil {
		return err
	}
	if t.job == nil {
		return nil
	}
	if err := t.job.assign(t.handle); err != nil {
		if want == Job {
			return unavailable(want, errors.Join(unsupported("the process cannot be put into a job object"), err))
		}
		t.job.close()
		t.job = nil
	}
	return nil
}

func (t *jobTree) Contained() Kind {
	if t.job == nil {
		return Leader
	}
	return Job
}

func (t *jobTree) Signal(sig syscall.Signal) error {
	select {
	case <-t.gone:
		return os.ErrProcessDone
	default:
	}
	switch {
	case sig != syscall.SIGKILL && t.Ask(sig):
		return nil
	case sig != syscall.SIGKILL:
		return fmt.Errorf("procgroup: signal %v: %w", sig, unsupported("there is no console to send Ctrl-Break by"))
	case t.job != nil:
		return os.NewSyscallError("TerminateJobObject", windows.TerminateJobObject(t.job.h, killedCode))
	}
	return os.NewSyscallError("TerminateProcess", windows.TerminateProcess(t.handle, killedCode))
}

func (t *jobTree) Ask(syscall.Signal) bool { return t.console && askGroup(t.pid) }

// Alive implements Tree.Alive. It returns false if there is no job, and true if the job's processes cannot be counted.
func (t *jobTree) Alive() bool {
	if t.job == nil {
		return false
	}
	n, err := t.job.active()
	return n > 0 || err != nil
}

func (t *jobTree) Kill(deadline time.Time) (survivors, _ []int) {
	if t.job != nil {
		survivors = t.job.kill(deadline)
	} else {
		_ = windows.TerminateProcess(t.handle, killedCode)
	}
	if !t.Wait(context.Background(), deadline) && len(survivors) == 0 {
		survivors = []int{t.pid}
	}
	return survivors, nil
}

func (t *jobTree) Release(time.Time) {
	if t.job != nil {
		t.job.release()
	}
}

// Close implements Tree.Close. The goroutine of begin still waits for a leader that could not be killed.
func (t *jobTree) Close() {
	if t.job != nil {
		t.job.close()
	}
	if t.handle != 0 {
		windows.CloseHandle(t.handle)
		t.handle = 0
	}
}
