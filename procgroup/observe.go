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

// An Observer watches a process that was not started by [Start], and its descendants. Create an Observer with
// [Observe]. Its methods are safe for concurrent use.
type Observer struct {
	foreign proctree.Foreign
	work    watches

	mu      sync.Mutex // guards users and stopped
	users   int        // calls of Tree and WriteStacks in progress, plus 1 for work; the last user closes foreign
	stopped bool
}

// Observe makes the work of a child process and its descendants a heartbeat for the executions of ctx, as an [Activity]
// does for the commands of this package. The descendants are found by their parents. Pass the zero Activity to use only
// [Observer.Tree] and [Observer.WriteStacks].
//
// The Observer works until [Observer.Stop] is called, even after the process has ended. If the process has been waited
// for already, the error wraps [os.ErrProcessDone]; a caller that waits for the process on another goroutine must
// expect that. If CPURate is invalid, the error is a [*timeout.ConfigError]. Observe needs Linux 5.10 or later; on
// other systems the error wraps [errors.ErrUnsupported]. Observe panics with a ConfigError if process is nil.
func Observe(ctx context.Context, process *os.Process, a Activity) (*Observer, error) {
	if process == nil {
		panic(&timeout.ConfigError{Key: "process", Value: "nil", Accepted: "one that is not nil"})
	}
	if err := a.Check(); err != nil {
		return nil, err
	}
	foreign, err := proctree.Watch(process)
	if err != nil {
		return nil, fmt.Errorf("procgroup: Observe: %w", err)
	}
	return &Observer{foreign: foreign, work: startWatches(ctx, a, foreign.Meter), users: 1}, nil
}

// Tree returns the current list of the process and its descendants; see [ProcessList]. The list is empty if the process
// has been waited for, or if Stop has been called.
func (o *Observer) Tree() ProcessList {
	if !o.enter() {
		return ProcessList{}
	}
	defer o.leave()
	return newProcessList(o.foreign.Snapshot(time.Now().Add(viewTime)))
}

// WriteStacks makes the observed processes write their stacks, as Stacks of [Stop] does, and reports whether it found a
// process to send the signal to. It considers only processes for which fn returns true, or all if fn is nil. Call it
// only for processes that are about to be killed, because most of them end. They write to their own output; WriteStacks
// returns 200 ms after it has begun to send the signals. After Stop it returns false at once.
//
// fn is called on separate goroutines, for one process after the other. The list of processes and all calls have 200 ms
// together. The processes that are left then get no signal; on a machine with many processes these may be all. If fn
// panics, WriteStacks panics with the same value.
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

// inTime returns a function that calls fn on another goroutine and returns its result. If a call has not returned by
// until, that call and all later ones return false. A panic or Goexit of fn is repeated. inTime returns nil if fn is
// nil.
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

// enter reports whether Stop has not been called. If so, it adds a user, and the caller must call leave.
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

// Stop stops observing and releases the Observer's resources. It returns at once: if calls of Tree or WriteStacks or a
// measurement of work are in progress, the last of them to end releases the resources. Stop may be called more than
// once.
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
