package task

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// ErrCancelled is why the context of a run ends whose client has cancelled the task.
var ErrCancelled = errors.New("the task was cancelled")

// ErrLost is why the context of a run ends whose task no longer belongs to this process, so that
// nobody could fetch its result: the store has declared the process gone, as one does when the
// lease of a replica that was suspended has ended (see [Record.Lost]), or has the task no more. The
// cause says which, and errors.Is finds ErrLost in it. As any abort it has the exit code 130.
var ErrLost = errors.New("the task was lost")

var (
	errDeclaredGone = fmt.Errorf("%w: the store has declared this process gone, as when it has not renewed its lease in time", ErrLost)
	errRemoved      = fmt.Errorf("%w: the store has it no more", ErrLost)
)

// ended is why a run ends whose record is final.
func (r *Record) ended() error {
	if r.Status == Cancelled {
		return ErrCancelled
	}
	return errDeclaredGone
}

// A Run is a call that runs under [Do] and may be, or become, a task or a continuation. A nil *Run
// is a call that stays plain: its methods do what is right for that. All are safe for
// concurrent use.
type Run struct {
	tasks  *Tasks
	call   Call
	form   Form
	soft   time.Duration
	began  time.Time
	owner  string
	ctx    context.Context // the tool's
	cancel context.CancelCauseFunc

	id       string    // set with the handle
	created  time.Time // of the handle
	stopping context.CancelFunc
	seen     chan struct{} // closed by the first request about the task

	telling chan struct{} // held by tell

	mu       sync.Mutex
	state    state
	monitor  *heartbeat.Monitor // of the newest execution
	exec     context.Context    // the function's
	ended    bool               // that function has returned
	muted    bool
	final    bool
	sending  int
	sent     chan struct{} // closed when nothing is being sent, if somebody waits for that
	asking   int           // questions under way that are requests of their own
	fetching map[*context.Context]struct{}
	fetched  chan struct{} // closed by the next tasks/result, if somebody waits for that
	wasSeen  bool
}

type state int

const (
	pending state = iota
	handed
)

type runKey struct{}

// FromContext returns the run that ctx belongs to, or nil.
func FromContext(ctx context.Context) *Run {
	r, _ := ctx.Value(runKey{}).(*Run)
	return r
}

// Context returns ctx as a context of the run, for an SDK that does not pass on the context that
// Do has called run with. [toolcall.Do] must be called with one or the other, for that is how
// the run learns of the heartbeat.
func (r *Run) Context(ctx context.Context) context.Context {
	if r == nil {
		return ctx
	}
	return toolcall.WithObserver(context.WithValue(ctx, runKey{}, r), (*observer)(r))
}

// An observer is a run as toolcall.Do knows it.
type observer Run

func (o *observer) Started(ctx context.Context) {
	r := (*Run)(o)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exec, r.monitor, r.ended = ctx, heartbeat.FromContext(ctx), false
	if r.state == handed {
		r.relay()
	}
}

func (o *observer) Ended() {
	r := (*Run)(o)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
}

// returned reports whether the tool has returned, or was stopped and given up on.
func (r *Run) returned() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

// relay passes the details of the heartbeat on to the record. The caller has the lock.
func (r *Run) relay() {
	heartbeat.Relay(r.exec, r.tasks.poll, func(ctx context.Context, _ heartbeat.Event) {
		_ = r.tell(ctx)
	})
}

// tell stores the newest detail, and whether a question is under way. What a store does not take now
// comes with the next.
func (r *Run) tell(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, createWait)
	defer cancel()
	// Two at a time could leave what the slower one has seen.
	select {
	case r.telling <- struct{}{}:
		defer func() { <-r.telling }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	_, err := r.tasks.change(ctx, r.owner, r.id, func(record *Record) bool {
		return !record.Status.Final() && r.describeAnew(record)
	})
	return err
}

// describeAnew is describe, and reports whether that has changed anything.
func (r *Run) describeAnew(record *Record) bool {
	before := *record
	r.mu.Lock()
	r.describe(record)
	r.mu.Unlock()
	record.Updated = time.Now()
	return record.Status != before.Status ||
		record.Message != before.Message || record.Progress != before.Progress || record.Total != before.Total
}

// describe writes the newest detail of the heartbeat into a record, and whether a question of its own
// is under way. The caller has the lock.
func (r *Run) describe(record *Record) {
	switch {
	case r.asking > 0:
		record.Status = InputRequired
	case len(record.Questions) == 0:
		record.Status = Working
	}
	detail := r.monitor.Detail()
	if detail == nil {
		return
	}
	u := progress.UpdateOf(detail)
	record.Message, record.Progress, record.Total = u.Message, u.Progress, u.Total
}

// Handed reports whether the client has been given a handle, and in which form.
func (r *Run) Handed() (Form, bool) {
	if r == nil {
		return Plain, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != handed {
		return Plain, false
	}
	return r.form, true
}

// ID is the id of the task, "" before there is one.
func (r *Run) ID() string {
	if _, is := r.Handed(); !is {
		return ""
	}
	return r.id
}

// handed makes the run that of a task that is stored.
func (r *Run) handed(record Record) {
	ctx, stop := context.WithCancel(context.WithoutCancel(r.ctx))
	r.mu.Lock()
	r.id, r.created, r.seen, r.stopping, r.state = record.ID, time.Now(), make(chan struct{}), stop, handed
	if r.exec != nil {
		r.relay()
	}
	r.mu.Unlock()
	go r.watch(ctx, record)
}

// watch follows the record, which others may change: a client that cancels, another replica.
func (r *Run) watch(ctx context.Context, record Record) {
	if now := record; r.describeAnew(&now) {
		_ = r.tell(ctx) // a beat or a question has come while the record was being stored
	}
	var notes chan Record
	if r.call.Changed != nil && r.form != Continued {
		// A client that does not read must not keep a cancel from the tool.
		notes = make(chan Record, 1)
		defer close(notes)
		go r.notifyChanged(notes)
	}
	var wait backoff
	for !record.Status.Final() {
		if record.Abort {
			r.cancel(ErrCancelled)
		}
		next, err := r.tasks.store.Wait(ctx, r.owner, r.id, record.Revision)
		if wait.decided(err) {
			r.cancel(errRemoved)
			return
		}
		if err != nil {
			if r.isFinal() || !wait.sleep(ctx) {
				return
			}
			continue
		}
		wait.reset()
		record = next
		if record.Status.Final() {
			r.finalize()
		}
		if notes != nil {
			select {
			case <-notes: // the newest counts
			default:
			}
			notes <- record
		}
	}
	r.cancel(record.ended()) // does nothing where the run has ended
}

// finalize lets nothing more be sent about the task.
func (r *Run) finalize() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.final = true
}

func (r *Run) isFinal() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.final
}

// over gives back what the run holds.
func (r *Run) over() {
	r.cancel(nil)
	r.tasks.drop(r)
	r.tasks.permits.Release(1)
}
