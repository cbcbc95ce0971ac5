package procgroup

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
)

// An Observer watches a process that the caller has started and waits for. Create one with
// [Observe]. Its methods are safe for concurrent use.
type Observer struct {
	mu      sync.Mutex // held while foreign is looked at for Tree, and closed
	foreign *proctree.Foreign
	work    watches
}

// Observe makes the work of a child process and its descendants a heartbeat for the
// executions of ctx, as an [Activity] does for the commands of this package. The descendants
// are found by their parents. Pass the zero Activity to use only [Observer.Tree].
//
// The Observer works until [Observer.Stop] is called, even after the process has ended. If
// the process has been waited for already, the error wraps [os.ErrProcessDone]; a caller that
// waits for the process on another goroutine must expect that. If a rate is invalid, the
// error is a [*timeout.ConfigError]. Observe needs Linux 5.4 or later; on other systems the
// error wraps [errors.ErrUnsupported].
func Observe(ctx context.Context, process *os.Process, a Activity) (*Observer, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	foreign, err := proctree.Watch(process)
	if err != nil {
		return nil, fmt.Errorf("procgroup: Observe: %w", err)
	}
	return &Observer{foreign: foreign, work: startWatches(ctx, a, foreign.Meter)}, nil
}

// Tree returns the processes as they are now; see [ProcessList]. The list is empty if the
// process has been waited for, or if Stop has been called.
func (o *Observer) Tree() ProcessList {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.foreign == nil {
		return ProcessList{}
	}
	return newProcessList(o.foreign.Snapshot(time.Now().Add(viewTime)))
}

// WriteStacks makes the observed processes write their stacks, as [WithStacks] does, and reports
// whether it has sent a signal to any. It asks only processes for which fn returns true, or all if fn
// is nil. Call it only for processes that are about to be killed, because most of them end.
// They write to their own output, and have 200 ms for it, after which WriteStacks returns.
func (o *Observer) WriteStacks(fn func(pid int) bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.foreign == nil {
		return false
	}
	ask := o.foreign.StackWriters(time.Now().Add(stacksTime), fn)
	if ask == nil {
		return false
	}
	until := time.Now().Add(stacksTime)
	ask(until)
	time.Sleep(time.Until(until))
	return true
}

// Stop stops observing and releases the Observer's resources. It may be called more than
// once.
func (o *Observer) Stop() {
	o.work.stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.foreign != nil {
		o.foreign.Close()
		o.foreign = nil
	}
}
