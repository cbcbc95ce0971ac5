// Package proctree starts a command in a containment, such as a process group or a control group, so that
// the processes of the command can be signalled, waited for, killed and listed. Callers pass the deadlines and
// handle the output.
package proctree

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/cgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/work"
)

// A Tree is a running command: its process, which is called the leader, and the processes that the command has
// started, as far as the containment can find them. Each family of systems has its own implementation, and a function
//
//	func Start(ctx context.Context, cmd *exec.Cmd, want Kind) (Tree, error)
//
// that starts cmd with the containment want. The caller must not use cmd afterwards. With Helper and HelperTree,
// Start waits for the helper to start the command. If ctx is done first, Start kills both and returns ctx.Err().
//
// The function
//
//	func Attach(cmd *exec.Cmd, kind Kind, stop Signal, grace time.Duration) (time.Duration, error)
//
// prepares a command that the caller starts and waits for: it makes cmd.Cancel send stop to the tree, and kill the
// tree after grace. It returns the grace in force, which is 0 on a system that can only kill.
//
// Callers call the methods in this order: Wait, until the leader has ended or must be stopped; Ask, if it must be
// stopped; then either Kill or Release; then Close.
//
// A read of /proc may block for ever. StackWriters, Alive, Snapshot and Others abandon such a read after a moment (see
// Unanswered), and so always return. A work.Meter and a waits.Meter may never return, so no caller waits for them.
type Tree interface {
	// Contained returns the containment in force. After a Kill that could not read /proc at its last look, it returns
	// Group in place of Descendants.
	Contained() Kind
	// Wait waits until the leader has ended, ctx is done, or the deadline has passed; the zero Time means no deadline.
	// It reports whether the leader has ended. On Linux, macOS and the BSDs it does not reap the leader: as long as
	// the leader is a zombie, its process id and its group id cannot be reused.
	Wait(ctx context.Context, deadline time.Time) (ended bool)
	// Signal sends sig to all processes of the tree. It returns os.ErrProcessDone if there is no process to signal; on
	// Linux, a leader that is a zombie may count as a process. It may be called at any time before Kill and Release.
	Signal(sig Signal) error
	// StackWriters finds the processes that write their stacks when they receive a certain signal. It considers only
	// those for which only returns true, or all if only is nil. It returns a function that sends each its signal, one
	// after the other, before the time in its argument; the function is nil if no such process is found. After until,
	// StackWriters reads at most maxFree processes, and waits for no slow read. It may be called at any time before
	// Kill and Release.
	StackWriters(until time.Time, only func(pid int) bool) (ask func(until time.Time))
	// Ask requests all processes to end: on Unix by sig, on Windows by Ctrl-Break. It returns false if the request
	// cannot be sent.
	Ask(sig Signal) bool
	// Alive reports whether any process is left that is not a zombie. If Linux does not show the processes at the
	// moment, it returns true; on systems that cannot list them it returns false. Call it after the leader has ended.
	Alive() bool
	// Meter returns a Meter of the processor time that the tree uses or, if io is set, of the bytes that it reads and
	// writes. Both Meter and the returned function may be called at any time before Close.
	Meter(io bool) work.Meter
	// Snapshot lists the processes of the tree, zombies included, in no order. It reads at most maxFree processes
	// after until, and lists at most maxListed; more reports that there may be others, apart from zombies in a control
	// group. It may be called at any time before Kill and Release.
	Snapshot(until time.Time) (all []Process, more bool)
	// Others is like Snapshot, without the leader and without zombies. On Linux it looks up to othersTries times as
	// long as it finds no process and there may be one; until is for the first look, and more is false if the last one
	// finds no process either. Call it at most once, after the leader has ended and before Kill or Release.
	Others(until time.Time) (all []Process, more bool)
	// Kill kills all processes, the leader included, and reaps the leader. It returns the processes that are still
	// alive shortly after the deadline as survivors, and as unidentified those that it did not kill because they may
	// not belong to the tree. If processes kept starting successors until the deadline, the last ones that it saw and
	// killed are among the unidentified.
	Kill(deadline time.Time) (survivors, unidentified []int)
	// Release reaps the leader, which has ended, and lets all other processes live on. It leaves to Close what it cannot
	// do by the deadline.
	Release(deadline time.Time)
	// State returns the error of cmd.Wait for the leader, which is nil for exit code 0. reaped is false if the leader
	// has not ended. Call State after Kill or Release.
	State() (err error, reaped bool)
	// Unanswered returns the number of abandoned reads about the tree's processes that have not returned yet. Each
	// occupies a goroutine and a thread.
	Unanswered() int
	// Total returns the resources that the tree has used. Call it after Kill or Release.
	Total() Total
	// Close releases the descriptors and the control group of the tree. If the leader has not ended, or processes
	// are left in the control group, a goroutine does so later.
	Close()
}

// A Foreign is a child of this process that the caller has started and waits for, with its descendants. Meter, Snapshot
// and StackWriters are those of a Tree. The caller must close it.
type Foreign interface {
	Meter(io bool) work.Meter
	Snapshot(until time.Time) (all []Process, more bool)
	StackWriters(until time.Time, only func(pid int) bool) (ask func(until time.Time))
	Close()
}

// Total and Limits are types of package cgroup: the resources that a tree has used, and the most that it may use.
type (
	Total  = cgroup.Total
	Limits = cgroup.Limits
)

// reapTime is the time that killed processes get to exit where the caller has passed no deadline.
const reapTime = 650 * time.Millisecond

// AwaitEmpty waits until t.Alive returns false, or the deadline has passed. It reports whether t.Alive has returned
// false. Call it after the leader has ended.
func AwaitEmpty(t Tree, deadline time.Time) bool {
	for b := patient.Backoff(0); ; {
		begun := time.Now()
		if !t.Alive() {
			return true
		}
		b = max(b, patient.Backoff(min(9*time.Since(begun), 10*patient.MaxBackoff))) // slow looks take a tenth of the time
		if !b.Sleep(deadline) {
			return false
		}
	}
}

// waitFor implements Tree.Wait for a leader whose end closes gone.
func waitFor(ctx context.Context, gone <-chan struct{}, deadline time.Time) bool {
	if !deadline.IsZero() {
		var cancel func()
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	select {
	case <-gone:
	case <-ctx.Done():
	}
	// A leader that has ended wins over a context that is done and a deadline that has passed.
	select {
	case <-gone:
		return true
	default:
		return false
	}
}
