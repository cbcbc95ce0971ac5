// Package proctree starts a command in a containment, such as a process group or a control group,
// so that all the processes that it starts can be signalled, waited for, killed and listed. The
// package knows neither limits nor output: its callers pass deadlines.
package proctree

import (
	"context"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/cgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/work"
)

// A Tree is a running command and all the processes that it has started. There is one
// implementation per family of systems. Each has a function
//
//	func Start(ctx context.Context, cmd *exec.Cmd, want Kind) (Tree, error)
//
// that starts cmd with the containment want. The caller must not use cmd afterwards. If Start has to wait
// for the command to start, it gives up when ctx is done, and returns the error of ctx.
//
// For a command that the caller starts and waits for itself there is
//
//	func Attach(cmd *exec.Cmd, kind Kind, stop syscall.Signal, grace time.Duration) (time.Duration, error)
//
// which makes cmd.Cancel send stop to the tree, and kill the tree after the grace. It returns the grace in
// force, which is 0 if the system has no way to ask a tree to end.
//
// The methods are called in a fixed order: Wait, until the leader has ended or must be stopped; Ask,
// if it must be stopped; then either Kill or Release; then Close.
//
// What the system does not answer is given up after a moment; see Unanswered. So StackWriters, Alive, Snapshot and
// Others return, and their callers may wait for them. A Meter and a look of package waits need not return, and
// nothing may wait for them.
type Tree interface {
	// Contained returns the containment in force or, after Kill, the containment that was in force.
	Contained() Kind
	// Wait waits until the leader has ended, ctx is done, or the deadline has come; the zero Time means no deadline.
	// It reports whether the leader has ended. It does not reap the leader: as long as the leader is a zombie, its
	// process id and its group id cannot be reused.
	Wait(ctx context.Context, deadline time.Time) (ended bool)
	// Signal signals all processes. It returns os.ErrProcessDone if none is left. It may
	// be called at any time before Kill and Release.
	Signal(sig syscall.Signal) error
	// StackWriters finds the processes that write their stacks on a signal, of those for which only returns true,
	// or of all if only is nil. It returns a function that sends them that signal, the last before the time that it
	// is given, or nil if there is no such process. Once until has come it looks at no more than the first few
	// processes, and waits for no slow read. It may be called at any time before Kill and Release.
	StackWriters(until time.Time, only func(pid int) bool) (ask func(until time.Time))
	// Ask asks all processes to end, on Unix by a signal. It reports false if the system has no way to ask them.
	Ask(sig syscall.Signal) bool
	// Alive reports whether any process is left that is not a zombie. It is called after the
	// leader has ended.
	Alive() bool
	// Meter returns a function that tells how much processor time the tree uses or, with io, how many bytes it
	// reads and writes. Meter and the function may be called at any time before Close.
	Meter(io bool) work.Meter
	// Snapshot lists the processes of the tree, zombies included, in no order. Once until has
	// come it looks at no more than the first few processes, and reports that there may be more.
	// It may be called at any time before Kill and Release.
	Snapshot(until time.Time) (all []Process, more bool)
	// Others lists, as Snapshot does, the processes that are alive apart from the leader, which has ended. While it
	// finds none and there may be some, it looks again, usually for a quarter of a second. It lists none where the
	// system shows none. It is called at most once, before Kill or Release.
	Others(until time.Time) (all []Process, more bool)
	// Kill kills everything, the leader too, reaps the leader, and returns the processes that are still there when
	// the deadline has come, and those that it left alone because they may not belong to the tree.
	Kill(deadline time.Time) (survivors, unidentified []int)
	// Release reaps the leader, which has ended, and lets all other processes live on.
	Release(deadline time.Time)
	// State returns how the leader ended, once Kill or Release has returned: the error of its cmd.Wait, which is
	// nil for exit code 0, and false if the leader is still there.
	State() (err error, reaped bool)
	// Unanswered returns how many questions about the processes of the tree were given up and have not been answered by
	// the system. Each keeps a goroutine and a thread.
	Unanswered() int
	// Total returns what the tree has used, once Kill or Release has returned.
	Total() Total
	// Close releases the descriptors and the control group of the tree. A goroutine does so
	// later if a process could not be killed.
	Close()
}

// Total is what all processes of a tree have used, and Limits are the most that they may use.
type (
	Total  = cgroup.Total
	Limits = cgroup.Limits
)

// reapTime is how long killed processes may take to be gone, if the caller sets no deadline.
const reapTime = 650 * time.Millisecond

// AwaitEmpty waits until no process of t is alive, or the deadline has come. It reports whether none is alive. Call
// it after the leader has ended.
func AwaitEmpty(t Tree, deadline time.Time) bool {
	for b := patient.Backoff(0); ; {
		begun := time.Now()
		if !t.Alive() {
			return true
		}
		b = max(b, patient.Backoff(min(9*time.Since(begun), 10*patient.MaxBackoff))) // a look at many processes takes its time
		if !b.Sleep(deadline) {
			return false
		}
	}
}

// waitFor implements Tree.Wait for a leader whose end closes a channel.
func waitFor(ctx context.Context, gone <-chan struct{}, deadline time.Time) bool {
	// A leader that has ended wins over a context that is done and a deadline that has passed.
	select {
	case <-gone:
		return true
	default:
	}
	var over <-chan time.Time
	if !deadline.IsZero() {
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-gone:
		return true
	case <-ctx.Done():
	case <-over:
	}
	return false
}
