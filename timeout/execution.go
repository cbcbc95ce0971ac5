package timeout

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// An Execution is one call of [Run] or [Do]. [FromContext] returns the execution that a function runs in, and
// [Running] lists the executions in progress. All methods may be called on a nil *Execution: String returns "no
// execution", and the others return zero values. An Execution must not be copied.
//
// An Execution may be used after it has ended, but it keeps everything that its function refers to
// in memory. To remember an execution, keep its [Snapshot].
type Execution struct {
	// The execution, the context of its function and its heartbeat are one object, which saves allocations. The types
	// scope, root and engine are other names of this struct: a scope is the context that the function gets, a root is
	// the parent of inner, and an engine implements pulse.Engine for cell.
	//
	// The first goroutine to set decided, under the cell's lock, decides the outcome: for the function's return, a
	// limit, the end of the caller's context, or Abort. It then cancels the context. Therefore the error, the
	// context's Cause, the hooks and the log report the same outcome.

	// The heartbeat comes first, so that a beat reads few cache lines. Its lock guards the fields of this group,
	// except for normal and the start of the grace.
	cell  pulse.Cell
	timer pulse.Timer
	armed time.Duration // the instant at which the timer fires next; Forever if it is not set
	wait  chan struct{} // closed to wake Run in waitUntil; nil if Run does not wait
	// decided reports whether the outcome has been decided: a limit has fired, the function has returned, or the
	// caller or Abort has stopped the execution. No limit fires after that.
	decided       bool
	returned      bool
	abandoned     bool
	begun         bool          // the function has been called
	leaves        bool          // whether AbandonedCount includes this execution; see settle
	borrowed      bool          // whether the enforced total is the time until the caller's deadline
	awaitsReserve bool          // whether the timer must fire when the reserve is reached; false after that
	normal        bool          // false if the function panicked or called runtime.Goexit; written like err
	stalls        *stalls       // nil if there was no stall
	warnedFor     time.Duration // the instant of the beat after which NearIdle was last reported, or -1
	cancelledAt   time.Duration // the instant at which the grace begins
	returnedAt    time.Duration

	inner  context.Context // the cancel context on which the function's context, a scope, is based
	caller context.Context
	// callersEnd is the Done channel of the caller's context.
	callersEnd <-chan struct{}
	propagate  func() // cancels inner with the Err and the Cause of the root
	ended      atomic.Pointer[ending]

	settings
	fn        func(context.Context) error
	reports   *reports                // nil if there are no hooks and no logger
	observing *observation            // nil unless limits are only observed
	entry     atomic.Pointer[entry]   // nil for most executions
	closing   atomic.Pointer[closing] // nil for most executions

	// Written by the goroutine that decides, before it cancels the context.
	stop *Error // the outcome; nil if the function has returned in time

	// Written by the function's goroutine before returned is set.
	err error
}

// An engine is an Execution as the pulse.Engine of its heartbeat.
type engine Execution

// An ending is a cancelled context that provides a Cause, and whose Err is err.
type ending struct {
	context.Context
	err error
}

// An entry holds the fields that few executions need: an ID, and the panic of a nested execution.
type entry struct {
	id uint64

	// Guarded by the cell's lock.
	reported chan struct{} // closed once the abandonment has been reported

	passing atomic.Pointer[PanicError] // the last panic that a nested execution passed on unchanged; see relayPanic
}

// A reports holds the fields that only an execution with hooks or a logger needs.
type reports struct {
	watch []*Hooks // the watchers of the process when the execution began

	// caller is the caller's context with the values that Context hooks have added, or nil if none has. It is set
	// before the first hook gets the function's context.
	caller *enriched

	// Guarded by the cell's lock.
	queue   []report
	busy    bool          // whether a goroutine delivers reports, or is about to
	since   time.Duration // when the delivery began
	late    bool          // whether Run has stopped waiting for the delivery
	dropped int           // number of reports left out because the queue was full; see crowded
	room    [2]report
}

// A report is a hook to call, or a record to log.
type report struct {
	hook   hook
	s      *Snapshot // nil means the state when the report is delivered
	next   int       // number of hook functions that have been tried
	record *record
}

type record struct {
	level slog.Level
	msg   string
	attrs []slog.Attr
}

// An enriched is the caller's context with the values of a context that a hook has made from it. It
// ends when the caller's context does, with the same Err and Cause.
type enriched struct {
	context.Context
	values context.Context
}

// A closing records whether an execution is closing, and which nested executions begin to close with it. It is
// created when it is first needed.
type closing struct {
	begun   chan struct{}
	enter   sync.Once   // registers the execution in outer's inside
	entered atomic.Bool // whether enter has run
	outer   *Execution  // the enclosing execution, or nil; set by enter

	// mu guards the fields below. It may be locked while a cell is locked. No lock is acquired while mu is held.
	mu     sync.Mutex
	over   bool          // whether begun has been closed
	at     time.Duration // when closing began
	inside map[*Execution]struct{}
}

// A stalls summarizes the stalls so far. It is immutable; a new stall replaces it under the cell's lock.
type stalls struct {
	count      int
	total      time.Duration // the total time for which the process could not run while the timer was overdue
	at         time.Duration // when the newest stall was found
	unreported time.Duration // the length of the newest stall, or 0 if it has been reported
}

// An observation records which limits would have stopped an execution under WithObserveOnly. The cell's lock guards it.
type observation struct {
	reporting sync.Mutex // held by reportExceeded, and locked before the cell

	cap         time.Duration // the enforced total, from a deadline of the caller or of TOOL_DEADLINE; or 0
	idle, total bool          // whether each limit has been exceeded
	first       *Error
	unreported  []*Error
}

// cap returns the enforced total, or 0 if no total is enforced.
func (e *Execution) cap() time.Duration {
	if e.observing != nil {
		return e.observing.cap
	}
	return e.limits.Total
}

// decide sets the outcome; a nil stop means that the function has returned in time. The cell is
// locked, and the outcome has not been decided before.
func (e *Execution) decide(stop *Error) {
	e.decided, e.stop = true, stop
	if stop != nil {
		e.cancelledAt = stop.Elapsed
	}
	if e.timer != nil {
		e.timer.Stop()
	}
}

// enclosing returns the enclosing execution, or nil if there is none or its heartbeat is muted.
func (e *Execution) enclosing() *Execution { return executionOf(e.cell.Enclosing()) }

// encloser returns the enclosing execution, even if its heartbeat is muted.
func (e *Execution) encloser() *Execution { return executionOf(pulse.Unmuted(e.caller)) }

// executionOf returns the execution whose heartbeat is c, or nil if c is nil.
func executionOf(c *pulse.Cell) *Execution {
	engine, _ := c.Engine().(*engine)
	return (*Execution)(engine)
}

// FromContext returns the innermost execution that ctx belongs to, or nil if there is none.
func FromContext(ctx context.Context) *Execution {
	e, _ := pulse.Of(ctx).Engine().(*engine)
	return (*Execution)(e)
}

// Parent returns the enclosing execution, or nil if e is nil or has none.
func (e *Execution) Parent() *Execution {
	if e == nil {
		return nil
	}
	return e.enclosing()
}

// String returns the name of the tool in a short description. It prevents fmt from reading the fields of an execution
// in use.
func (e *Execution) String() string {
	if e == nil {
		return "no execution"
	}
	return "timeout.Run(" + e.tool + ")"
}
