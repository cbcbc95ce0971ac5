package procgroup

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
)

// An Observer looks at a process that the caller has started, and waits for, itself.
type Observer struct {
	mu      sync.Mutex // held while foreign is looked at for Tree, and closed
	foreign *proctree.Foreign
	work    watches
}

// Observe makes the work of a child of this process and its descendants, as they are found
// by their parents, a heartbeat for the executions of ctx, as [WithActivity] does for the
// commands of this package. The zero Activity looks at nothing; it is for a caller
// that only wants [Observer.Tree].
//
// It goes on until [Observer.Stop], also when the process has ended. Of one that has been waited
// for, the error has [os.ErrProcessDone] in its tree: whoever waits on another goroutine must
// expect that of a process that ends quickly. It is for Linux; elsewhere, and before Linux 5.4,
// it is [errors.ErrUnsupported]. A rate that makes no sense is a [*timeout.ConfigError].
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

// Tree is what the processes are doing now: see [Result.Tree]. It is empty when the process
// has been waited for, or Stop was called. It is safe for concurrent use.
func (o *Observer) Tree() Tree {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.foreign == nil {
		return Tree{}
	}
	return newTree(o.foreign.Snapshot(time.Now().Add(viewTime)))
}

// Stop ends it. It may be called more than once.
func (o *Observer) Stop() {
	o.work.stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.foreign != nil {
		o.foreign.Close()
		o.foreign = nil
	}
}
