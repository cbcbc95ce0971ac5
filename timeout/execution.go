package timeout

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// An Execution is one call of [Run] or [Do]. [FromContext] returns the execution that a function
// runs in, and [Running] lists the executions in progress. The methods of a nil *Execution return
// zero values. An Execution must not be copied.
//
// An Execution may be used after it has ended, but it keeps everything that its function refers to
// in memory. To remember an execution, keep its [Snapshot].
type Execution struct {
	// It is one object with its function's context and its heartbeat, so that a run costs few
	// allocations and none of them can outlive the others: scope is that context, root what the
	// context is made from, and engine judges the heartbeat.
	//
	// The outcome is decided under the cell's lock by the first to set decided: the function that
	// returns, the limit that fires or the end of the caller's context. The same goroutine then
	// cancels the context, so the error, the context's Cause, the hooks and the log report one
	// outcome.

	// The heartbeat, first, so that a beat reads few cache lines. Its lock guards what follows.
	cell  pulse.Cell
	timer pulse.Timer
	armed time.Duration // when the timer fires next; Forever if the timer is not set
	wait  chan struct{} // closed to make a waiting Run look again
	// decided says that no limit may fire any more: a limit has fired, the function has
	// returned, or the caller's context has ended.
	decided       bool
	returned      bool
	abandoned     bool
	begun         bool          // the function has been called
	leaves        bool          // the function has left something behind; see settle
	borrowed      bool          // the total that is enforced is what was left of the caller's deadline
	awaitsReserve bool          // the timer fires for the reserve
	normal        bool          // the function has neither panicked nor called runtime.Goexit; set together with err
	stalls        *stalls       // nil without stalls
	warnedFor     time.Duration // the beat after which NearIdle was called last, or -1
	cancelledAt   time.Duration // the instant at which the grace begins
	returnedAt    time.Duration

	inner  context.Context // the function's context, without what scope adds
	caller context.Context
	// callersEnd is the Done channel of the caller's context.
	callersEnd <-chan struct{}
	propagate  func() // cancels inner as root says
	ended      atomic.Pointer[ending]

	settings
	fn        func(context.Context) error
	reports   *reports                // nil without hooks and a logger
	observing *observation            // nil unless limits are only observed
	entry     atomic.Pointer[entry]   // nil for most executions
	closing   atomic.Pointer[closing] // nil for most executions

	// Written by the goroutine that decides, before it cancels the context.
	stop *Error // the outcome; nil if the function has returned in time

	// Written by the function's goroutine before returned is set.
	err error
}

// An engine is an Execution as the pulse.Engine of its heartbeat cell.
type engine Execution

// An ending is a context that has ended with a Cause, and whose Err is err.
type ending struct {
	context.Context
	err error
}

// An entry holds fields that few executions need: an id, a place in the list, and the panic of an execution within
// this one.
type entry struct {
	id        uint64
	execution *Execution

	// Under the lock of the list.
	listed     bool
	prev, next *entry

	// Under the cell's lock.
	reported chan struct{} // closed when the abandonment has been reported

	passing atomic.Pointer[PanicError] // the last panic that an inner execution passed on unchanged
}

// A reports holds the fields that only an execution with hooks or a logger needs.
type reports struct {
	watch *watchers // the watchers of the process when the execution began; may be nil

	// caller is the caller's context with the values that hooks have added, nil without any. It
	// is set before the first report is delivered, and so before anybody has the function's context.
	caller *enriched

	// Under the cell's lock.
	queue   []report
	busy    bool          // a goroutine delivers reports
	since   time.Duration // when the delivery began
	late    bool          // Run has returned without waiting for the delivery
	dropped int           // reports of moments that were left out
	room    [2]report
}

// A report is a hook to call, or a record to log.
type report struct {
	hook   hook
	s      *Snapshot // nil means the state when the report is delivered
	next   int       // number of hooks that have been called
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

// A closing is the state of an execution that is closing, or whose closing has been asked for. Most executions have
// none.
type closing struct {
	begun   chan struct{}
	enter   sync.Once   // registers the execution in the inside of the enclosing one
	entered atomic.Bool // enter has been done
	outer   *Execution  // the enclosing execution; set by enter

	// The lock is taken under that of a cell, and nothing is taken under it.
	mu     sync.Mutex
	over   bool          // begun is closed
	at     time.Duration // when closing began
	inside map[*Execution]struct{}
}

// A stalls describes the stalls so far. It is never changed, only replaced, under the cell's lock.
type stalls struct {
	count      int
	total      time.Duration // how long in all the process could not run while the timer was overdue
	at         time.Duration // when the newest stall was found
	unreported time.Duration // the length of the newest stall, or 0 if it has been reported
}

// An observation holds which limits would have fired. The cell's lock guards it.
type observation struct {
	reporting sync.Mutex // held while something is reported, and taken before the cell's

	cap         time.Duration // the rest of the caller's deadline, which is enforced; 0 means no deadline
	idle, total bool          // whether each limit has been exceeded
	first       *Error
	unreported  []*Error
}

// cap returns the total that is enforced, or 0 if no total is.
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

// enclosing returns the enclosing execution, or nil.
func (e *Execution) enclosing() *Execution { return executionOf(e.cell.Enclosing()) }

// encloser returns the enclosing execution, even if its heartbeat is muted.
func (e *Execution) encloser() *Execution { return executionOf(pulse.Unmuted(e.caller)) }

// executionOf returns the execution that has the cell, or nil.
func executionOf(c *pulse.Cell) *Execution {
	engine, _ := c.Engine().(*engine)
	return (*Execution)(engine)
}

// FromContext returns the innermost execution of ctx, or nil if there is none.
func FromContext(ctx context.Context) *Execution {
	e, _ := pulse.Of(ctx).Engine().(*engine)
	return (*Execution)(e)
}

// Parent returns the enclosing execution, or nil if there is none.
func (e *Execution) Parent() *Execution {
	if e == nil {
		return nil
	}
	return e.enclosing()
}

// String returns a short description. It keeps fmt from reading the fields of an execution in use.
func (e *Execution) String() string {
	if e == nil {
		return "no execution"
	}
	return "timeout.Run(" + e.tool + ")"
}
