package procgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// An Observer watches a process that the caller has started and waits for. Create one with
// [Observe]. Its methods are safe for concurrent use.
type Observer struct {
	foreign *proctree.Foreign
	work    watches

	mu      sync.Mutex // held for moments
	users   int        // calls of Tree and WriteStacks in progress, and work until Stop; the last one closes foreign
	stopped bool
}

// Observe makes the work of a child process and its descendants a heartbeat for the
// executions of ctx, as an [Activity] does for the commands of this package. The descendants
// are found by their parents. Pass the zero Activity to use only [Observer.Tree].
//
// The Observer works until [Observer.Stop] is called, even after the process has ended. If
// the process has been waited for already, the error wraps [os.ErrProcessDone]; a caller that
// waits for the process on another goroutine must expect that. If a rate is invalid, the
// error is a [*timeout.ConfigError]. Observe needs Linux 5.4 or later; on other systems the
// error wraps [errors.ErrUnsupported]. Observe panics with a ConfigError if process is nil.
func Observe(ctx context.Context, process *os.Process, a Activity) (*Observer, error) {
	if process == nil {
		panic(&timeout.ConfigError{Key: "process", Value: "nil", Accepted: "one that is not nil"})
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	foreign, err := proctree.Watch(process)
	if err != nil {
		return nil, fmt.Errorf("procgroup: Observe: %w", err)
	}
	return &Observer{foreign: foreign, work: startWatches(ctx, a, foreign.Meter), users: 1}, nil
}

// Tree returns the processes as they are now; see [ProcessList]. The list is empty if the
// process has been waited for, or if Stop has been called.
func (o *Observer) Tree() ProcessList {
	if !o.enter() {
		return ProcessList{}
	}
	defer o.leave()
	return newProcessList(o.foreign.Snapshot(time.Now().Add(viewTime)))
}

// WriteStacks makes the observed processes write their stacks, as Stacks of [Stop] does, and reports whether it has
// sent a signal to any of them. It asks only processes for which fn returns true, or all if fn is nil. Call it only
// for processes that are about to be killed, because most of them end. They write to their own output, and have 200
// ms for it, after which WriteStacks returns.
//
// fn is called on a separate goroutine, for one process after the other. Together its calls have 200 ms: if one
// takes longer, that process and the rest are not asked. If fn panics, WriteStacks panics too.
func (o *Observer) WriteStacks(fn func(pid int) bool) bool {
	if !o.enter() {
		return false
	}
	defer o.leave()
	until := time.Now().Add(stacksTime)
	ask := o.foreign.StackWriters(until, inTime(fn, until))
	if ask == nil {
		return false
	}
	until = time.Now().Add(stacksTime)
	ask(until)
	time.Sleep(time.Until(until))
	return true
}

// inTime returns a function that calls fn, and that returns false once fn has not returned by until. It returns nil
// if fn is nil.
func inTime(fn func(pid int) bool, until time.Time) func(pid int) bool {
	if fn == nil {
		return nil
	}
	type answer struct {
		value bool
		err   error
	}
	over := false
	return func(pid int) bool {
		if over {
			return false
		}
		answers := make(chan answer, 1)
		go capture.Guard(func() { answers <- answer{value: fn(pid)} }, func(err error) { answers <- answer{err: err} })
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		select {
		case a := <-answers:
			if panicked := (*timeout.PanicError)(nil); errors.As(a.err, &panicked) {
				panic(panicked.Value)
			} else if a.err != nil {
				runtime.Goexit()
			}
			return a.value
		case <-timer.C:
			over = true
			return false
		}
	}
}

// enter reports whether o may still be used. If so, the caller must call leave afterwards.
func (o *Observer) enter() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.stopped {
		o.users++
	}
	return !o.stopped
}

func (o *Observer) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.users--; o.users == 0 && o.stopped {
		o.foreign.Close()
	}
}

// Stop stops observing and releases the Observer's resources. It does not wait for anything: calls of
// Tree and WriteStacks and an examination that are in progress release the resources when they end. It
// may be called more than once.
func (o *Observer) Stop() {
	o.mu.Lock()
	stopped := o.stopped
	o.stopped = true
	o.mu.Unlock()
	if stopped {
		return
	}
	o.work.end()
	o.work.thenClose(o.leave)
}
