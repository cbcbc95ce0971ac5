package adapter

import (
	"context"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/identity"
	"github.com/tooldeadline/tooldeadline/internal/observe"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/internal/running"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// A Task is a call that runs under [Do] and may be, or become, a task or a continuation. A nil *Task stands for a call
// that cannot become one: its methods only call send. All methods are safe for
// concurrent use.
type Task struct {
	core   running.Core[task.Store]
	call   Call
	form   task.Form
	soft   time.Duration
	began  time.Time
	run    running.Call
	ctx    context.Context // the tool's
	cancel context.CancelCauseFunc

	storing chan struct{} // held while a change is being told to the store

	mu      sync.Mutex
	state   state
	changed chan struct{} // closed by the next change of the state, if somebody waits for one
}

// A state is the part of a Task that changes.
type state struct {
	phase phase
	// Set from the phase handed on: the id, the time of the handle, and a function that ends the following of the
	// record.
	id       string
	since    time.Time
	unfollow context.CancelFunc

	exec     context.Context // of the newest execution of the tool
	returned bool            // that execution has ended
	seen     bool            // the client has asked for the task
	sending  int             // notifications under way
	asking   int             // questions under way that are requests of their own
	fetching map[*context.Context]struct{}
}

// A phase is how far a Task has come. It only increases.
type phase int

const (
	pending phase = iota // the call may stay plain
	handing              // the handle is about to be given
	handed               // the client has it
	final                // the record is final
)

func newTask(ctx context.Context, core running.Core[task.Store], c Call, form task.Form, soft time.Duration) *Task {
	t := &Task{core: core, call: c, form: form, soft: max(soft, 0), began: time.Now(), storing: make(chan struct{}, 1)}
	t.ctx, t.cancel = context.WithCancelCause(observe.With(context.WithoutCancel(ctx), observer{t}))
	t.run = running.Call{Owner: c.Caller.owner(form), Cancel: t.cancel, Of: t}
	return t
}

// observer tells a Task of the executions of its tool. It is in the context of the run, for [toolcall.Do].
type observer struct{ *Task }

// TaskOf returns the task of the call that ctx belongs to, if the call is one of the given session.
// Otherwise it returns nil, for example for a call of a server that a tool runs itself.
func TaskOf(ctx context.Context, session any) *Task {
	c := toolcall.FromContext(ctx)
	if c == nil || !identity.Same(c.Session, session) {
		return nil
	}
	o, _ := observe.From(ctx, observe.Of).(observer)
	return o.Task
}

// change changes the state, and wakes those who wait for that.
func (t *Task) change(f func(*state)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.state)
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// until waits until f returns true for the state, or until limit has passed, and then returns nil. A negative limit
// means no limit. If ctx ends first, the error is the cause of ctx.
func (t *Task) until(ctx context.Context, limit time.Duration, f func(*state) bool) error {
	var late <-chan time.Time
	if limit >= 0 {
		late = time.After(limit)
	}
	for {
		t.mu.Lock()
		if f(&t.state) {
			t.mu.Unlock()
			return nil
		}
		if t.changed == nil {
			t.changed = make(chan struct{})
		}
		changed := t.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-late:
			return context.Cause(ctx) // the end of ctx wins
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (t *Task) now() state {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state
}

func (t observer) Started(ctx context.Context) {
	t.change(func(s *state) {
		s.exec, s.returned = ctx, false
		if s.phase >= handed {
			t.relay(ctx)
		}
	})
}

func (t observer) Ended() { t.change(func(s *state) { s.returned = true }) }

// handed returns the id of the task and the form of the handle that the client has been given. It returns "" and
// [task.Plain] if the client has not been given a handle.
func (t *Task) handed() (id string, form task.Form) {
	if t != nil {
		if s := t.now(); s.phase >= handed {
			return s.id, t.form
		}
	}
	return "", task.Plain
}

// id returns the id of the task, or "" before there is one.
func (t *Task) id() string { return t.now().id }

// hand records that the call is answered with a handle. For an Extension or a continuation nothing else is sent from
// now on, and hand waits for a notification that is being sent.
func (t *Task) hand(record task.Record) {
	if t.form != task.Legacy { // progress goes on
		t.change(func(s *state) { s.phase = handing })
		_ = t.until(context.Background(), sendWait, func(s *state) bool { return s.sending == 0 })
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.ctx))
	t.change(func(s *state) {
		s.phase, s.id, s.since, s.unfollow = handed, record.ID, time.Now(), stop
		if s.exec != nil {
			t.relay(s.exec)
		}
	})
	go t.follow(ctx, record)
	if !t.core.Running.Handed(&t.run, record.ID, t.form == task.Continued) {
		t.cancel(toolcall.ErrShutdown)
	}
}

// relay passes the details of the heartbeat of an execution on to the record.
func (t *Task) relay(exec context.Context) {
	heartbeat.Relay(exec, t.core.Poll, func(ctx context.Context, _ any) { t.tell(ctx) })
}

// tell stores the newest detail, and whether a question is under way. If the store fails, the change is stored with
// the next one.
func (t *Task) tell(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, createWait)
	defer cancel()
	// With two at a time, the slower one could overwrite the newer detail.
	select {
	case t.storing <- struct{}{}:
		defer func() { <-t.storing }()
	case <-ctx.Done():
		return
	}
	_, _ = change(ctx, t.core.Store, t.run.Owner, t.id(), func(r *task.Record) bool {
		return !r.Status.Final() && t.describe(r)
	})
}

// describe writes the newest detail of the heartbeat into a record, and whether a question of its own is under way. It
// reports whether that has changed anything, apart from Updated, which it always sets.
func (t *Task) describe(r *task.Record) bool {
	status, before := r.Status, update(r)
	s := t.now()
	switch {
	case s.asking > 0:
		r.Status = task.InputRequired
	case len(r.Questions) == 0:
		r.Status = task.Working
	}
	if s.exec != nil {
		detail := heartbeat.FromContext(s.exec).Detail()
		u := progress.UpdateOf(detail)
		if u.Message == "" {
			u.Message = progress.UpdateOf(pulse.Of(s.exec).Words()).Message
		}
		if detail != nil || u.Message != "" {
			r.Message, r.Progress, r.Total = u.Message, u.Progress, u.Total
		}
	}
	r.Updated = time.Now()
	return r.Status != status || update(r) != before
}

// follow follows the record, which others may change: a client that cancels, another replica.
func (t *Task) follow(ctx context.Context, record task.Record) {
	if now := record; t.describe(&now) {
		t.tell(ctx) // a beat or a question has come while the record was being stored
	}
	try := newAttempts()
	for !record.Status.Final() {
		if record.Abort {
			t.cancel(task.ErrCancelled)
		}
		next, err := t.core.Store.Wait(ctx, t.run.Owner, record.ID, record.Revision)
		if try.decided(err) {
			t.cancel(errRemoved)
			return
		}
		if err != nil {
			if t.now().phase == final || !try.wait(ctx) {
				return
			}
			continue
		}
		try.reset()
		if record = next; record.Status.Final() {
			t.change(func(s *state) { s.phase = final })
		}
	}
	t.cancel(ended(&record)) // does nothing where the run has ended
}

// over releases the resources of the run.
func (t *Task) over() {
	t.cancel(nil)
	t.core.Running.End(&t.run)
}

const createWait = 5 * time.Second

// sendWait is how long a handle waits for notifications that are being sent.
const sendWait = 100 * time.Millisecond
