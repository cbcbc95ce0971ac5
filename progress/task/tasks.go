package task

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/running"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// Tasks are the tasks and continuations of a process: one for all its servers and sessions, since a
// client may ask for a task on another connection than the one that started it. It is safe for
// concurrent use.
type Tasks struct {
	core       Core
	maxRunning int64
}

// Core is the part of [Tasks] that package adapter uses. Programs have no use for it.
type Core struct {
	Store           Store
	Poll, Retention time.Duration
	Running         *running.Calls
}

// Core returns the part of t with which package adapter runs and finds tasks.
func (t *Tasks) Core() Core { return t.core }

// An Option changes what [New] returns. If an option is given twice, the last one counts.
type Option interface{ apply(*Tasks) }

type optionFunc func(*Tasks)

func (f optionFunc) apply(t *Tasks) { f(t) }

// WithStore keeps the tasks in s. Defaults to a zero [Memory]. A panic or a runtime.Goexit in s is an error of
// that call, as if the store could not be reached, and a method that does not return when its context ends is left
// 1 s later, except Create, whose task keeps its place among the running ones.
func WithStore(s Store) Option { return optionFunc(func(t *Tasks) { t.core.Store = s }) }

// WithPoll sets how often clients are asked to poll, which is also the shortest time between two
// changes of a task's status message. 0 or less means 1 s.
func WithPoll(d time.Duration) Option { return optionFunc(func(t *Tasks) { t.core.Poll = d }) }

// WithRetention sets how long a task can be read after its end. 0 or less means 10 min.
func WithRetention(d time.Duration) Option {
	return optionFunc(func(t *Tasks) { t.core.Retention = d })
}

// WithMaxRunning sets how many calls may run on as a task or a continuation at the same time. Further
// calls are answered with their results, as without tasks. 0 or less means 100.
func WithMaxRunning(n int) Option { return optionFunc(func(t *Tasks) { t.maxRunning = int64(n) }) }

// New returns tasks that are kept in memory unless [WithStore] is given. It starts no goroutine.
func New(opts ...Option) *Tasks {
	t := new(Tasks)
	for _, o := range opts {
		if o != nil {
			o.apply(t)
		}
	}
	if t.core.Store == nil {
		t.core.Store = new(Memory)
	}
	t.core.Store = guard(t.core.Store)
	t.core.Poll = cmp.Or(max(t.core.Poll, 0), time.Second)
	t.core.Retention = cmp.Or(max(t.core.Retention, 0), 10*time.Minute)
	t.core.Running = running.New(cmp.Or(max(t.maxRunning, 0), 100))
	return t
}

// Shutdown aborts the calls that run as a task or a continuation, with [toolcall.ErrShutdown] as the
// cause, and waits until their outcomes are stored or ctx ends. If ctx ends first, the error says how
// many outcomes are not stored, errors.Is finds the cause of ctx in it, and an outcome that the store
// does not take at the first try is given up. Calls that begin later are answered as without tasks.
// Stored tasks can still be read.
func (t *Tasks) Shutdown(ctx context.Context) error {
	if open := t.core.Running.Shutdown(ctx, toolcall.ErrShutdown); open > 0 {
		return fmt.Errorf("task: outcomes that are not stored: %d: %w", open, context.Cause(ctx))
	}
	return nil
}

// Close is [Tasks.Shutdown], bounded by [toolcall.ShutdownLimit].
func (t *Tasks) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), toolcall.ShutdownLimit)
	defer cancel()
	return t.Shutdown(ctx)
}
