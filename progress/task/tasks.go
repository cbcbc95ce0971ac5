package task

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/running"
	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// Tasks holds the tasks and continuations of a process. Use one Tasks for all servers and sessions of a process, since
// a client may request a task on another connection than the one that started it. The zero Tasks is ready to use; set
// its fields before the first use. It has no goroutine in the background, and is safe for concurrent use.
type Tasks struct {
	// Store keeps the tasks; nil means a store of [NewMemory] with its defaults. A panic or a runtime.Goexit in a
	// method is an error of that call, as if the store could not be reached. A method that has not returned 1 s after
	// the end of its context is abandoned, except Create: a Create that does not return counts as a running task.
	Store Store
	// Poll is the interval at which clients are told to poll. It is also the shortest time between two changes of a
	// task's status message because of heartbeats; the beginning and the end of the task, and a question, may change
	// it earlier. 0 or less means 1 s.
	Poll time.Duration
	// Retention is how long a task can be read after its end, unless its client has requested a shorter time, of which
	// it gets at least 10 times Poll, or the store is full. 0 or less means 10 min.
	Retention time.Duration
	// MaxRunning is how many calls of this process may run on as a task or a continuation at the same time. Further
	// calls are answered with their results, as without tasks. 0 or less means 100.
	MaxRunning int

	once sync.Once
	core running.Core[Store]
}

// Core returns the internal state of t for package adapter. Programs do not need it.
func (t *Tasks) Core() running.Core[Store] {
	t.once.Do(func() {
		t.core = running.Core[Store]{
			Store:     t.Store,
			Poll:      cmp.Or(max(t.Poll, 0), time.Second),
			Retention: cmp.Or(max(t.Retention, 0), 10*time.Minute),
			Running:   running.New(cmp.Or(max(int64(t.MaxRunning), 0), 100)),
		}
		if t.core.Store == nil {
			t.core.Store = NewMemory(0, 0)
		}
		t.core.Store = guard(t.core.Store)
	})
	return t.core
}

// Shutdown aborts the calls that run as a task or a continuation, with [toolcall.ErrShutdown] as the
// cause, and waits until their outcomes are stored or ctx ends. If ctx ends first, the error says how
// many outcomes are not stored, errors.Is finds the cause of ctx in it, and each of these outcomes is
// lost if the first try to store it fails. Calls that begin later are answered as without tasks.
// Stored tasks can still be read.
func (t *Tasks) Shutdown(ctx context.Context) error {
	if open := t.Core().Running.Shutdown(ctx, toolcall.ErrShutdown); open > 0 {
		return texts.Wrap(fmt.Sprint("task: outcomes that are not stored: ", open), context.Cause(ctx))
	}
	return nil
}

// Close calls [Tasks.Shutdown] with a context that ends after [toolcall.ShutdownLimit].
func (t *Tasks) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), toolcall.ShutdownLimit)
	defer cancel()
	return t.Shutdown(ctx)
}
