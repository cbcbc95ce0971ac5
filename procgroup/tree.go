package procgroup

import (
	"context"
	"syscall"
	"time"
)

// A tree is a command that runs, and everything that it has started. There is one
// implementation per family of systems, which its startTree gives:
// it starts cmd, which nobody else uses, held together as it is told. Where it has to
// wait for that, it gives up with the error of its context when that is done.
//
// The order is fixed: wait until the leader has ended or has to be stopped; ask, if it
// has; then either kill or release; then close.
type tree interface {
	// contained is what is in force, and after kill what was.
	contained() Containment
	// wait waits until the leader has ended, ctx is done or, unless it is zero, the
	// deadline has come. It reports whether the leader has ended, and does not reap it:
	// as long as it is a zombie, its process id and that of its group are nobody else's.
	wait(ctx context.Context, deadline time.Time) (ended bool)
	// signal signals everything. It gives os.ErrProcessDone where nothing is left. It may
	// be called at any time before kill and release.
	signal(sig syscall.Signal) error
	// ask tells everything to end, by a signal where there are such. It reports false where
	// there is no way to do so.
	ask(sig syscall.Signal) bool
	// alive reports whether anything is left that is not a zombie. The leader has ended.
	alive() bool
	// kill kills everything, the leader too, reaps the leader, and gives the processes
	// that are still there when the deadline has come, and those that it left alone
	// because it could not tell whether they belong to the tree.
	kill(deadline time.Time) (survivors, unidentified []int)
	// release lets go of everything but the leader, which has ended, and reaps it.
	release()
	// state is the leader's end, once kill or release has returned: the error of its
	// cmd.Wait, and false where it is still there.
	state() (err error, reaped bool)
	// close gives back what belongs to the tree. What has to wait for the end of a
	// process that could not be killed is left to a goroutine.
	close()
}

// backoff is for waiting on something that gives no sign: often at first, then ever
// less, so that neither a quick end nor a long wait costs much.
type backoff time.Duration

const maxBackoff = 20 * time.Millisecond

// sleep waits, until the deadline at the latest. It reports false at the deadline.
func (b *backoff) sleep(deadline time.Time) bool {
	left := time.Until(deadline)
	if left <= 0 {
		return false
	}
	d := time.Duration(*b)
	if d == 0 {
		d = 100 * time.Microsecond
	}
	time.Sleep(min(d, left))
	*b = backoff(max(d, min(d*3/2, maxBackoff)))
	return true
}

// waitFor is tree.wait for an end that a channel tells.
func waitFor(ctx context.Context, gone <-chan struct{}, deadline time.Time) bool {
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
