package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// ErrCancelled is why the context of a run ends whose client has cancelled the task.
var ErrCancelled = errors.New("the task was cancelled")

// How long is waited for the client: with a handle while a notification is being sent, and
// with a question for a sign that it has got the handle.
const (
	sendWait = 100 * time.Millisecond
	seenWait = time.Second
)

// tryWait bounds one attempt to store something, a large result included.
const tryWait = time.Minute

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

	telling sync.Mutex

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
	heartbeat.Relay(r.exec, r.tasks.poll, heartbeat.SinkFunc(func(ctx context.Context, _ heartbeat.Event) error {
		return r.tell(ctx)
	}))
}

// tell stores the newest detail, and whether a question is under way. What a store does not take now
// comes with the next.
func (r *Run) tell(ctx context.Context) error {
	// Two at a time could leave what the slower one has seen.
	r.telling.Lock()
	defer r.telling.Unlock()
	ctx, cancel := context.WithTimeout(ctx, createWait)
	defer cancel()
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
		if wait.decided(err) { // nobody could fetch what it returns
			break
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
	r.cancel(ErrCancelled) // does nothing where the run has ended
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

func (r *Run) notifyChanged(notes <-chan Record) {
	for record := range notes {
		func() {
			defer func() { _ = recover() }() // what it panics with is no sign of the task
			r.call.Changed(record.notification(r.form))
		}()
	}
}

// Notify calls send, which sends a progress notification or a log message for the call, unless the
// client must not get it any more: after an Extension handle or a continuation, and when the task
// is final. While send runs no handle is given, for up to 100 ms. It returns what send returns,
// or nil.
func (r *Run) Notify(send func() error) error {
	if r == nil {
		return send()
	}
	r.mu.Lock()
	if r.muted || r.final {
		r.mu.Unlock()
		return nil
	}
	r.sending++
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.sending--; r.sending == 0 && r.sent != nil {
			close(r.sent)
			r.sent = nil
		}
	}()
	return send()
}

// mute lets nothing more be sent, and waits for what is being sent.
func (r *Run) mute() {
	if r.form == Legacy {
		return // progress goes on
	}
	r.mu.Lock()
	r.muted = true
	if r.sending == 0 {
		r.mu.Unlock()
		return
	}
	sent := make(chan struct{})
	r.sent = sent
	r.mu.Unlock()
	wait := time.NewTimer(sendWait)
	defer wait.Stop()
	select {
	case <-sent:
	case <-wait.C:
	}
}

func (r *Run) unmute() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.muted = false
}

// InputRequired makes the status of a task input_required until done is called, for a question
// that is sent to the client as a request of its own (Legacy). It holds no idle check:
// ask under [progress.Await].
func (r *Run) InputRequired(ctx context.Context) (done func()) {
	if r == nil {
		return func() {}
	}
	r.askMore(ctx, 1)
	return sync.OnceFunc(func() { r.askMore(ctx, -1) })
}

func (r *Run) askMore(ctx context.Context, n int) {
	r.mu.Lock()
	r.asking += n
	is := r.state == handed
	r.mu.Unlock()
	if is {
		_ = r.tell(context.WithoutCancel(ctx))
	}
}

// Seen waits until the client has asked for the task, or a second has passed since its handle, or
// ctx ends. A question that is sent as a request of its own may overtake the handle, and a client
// that does not know the task yet cannot match it.
func (r *Run) Seen(ctx context.Context) error {
	if _, is := r.Handed(); !is {
		return nil
	}
	wait := time.NewTimer(time.Until(r.created.Add(seenWait)))
	defer wait.Stop()
	select {
	case <-r.seen:
	case <-wait.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

func (r *Run) see() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.wasSeen {
		r.wasSeen = true
		close(r.seen)
	}
}

// Fetching returns the context of a tasks/result of this process that waits for the task; it waits
// for one until ctx ends. Over HTTP a question may have no other stream to go out on.
func (r *Run) Fetching(ctx context.Context) (context.Context, error) {
	for {
		var fetched chan struct{}
		if r != nil {
			r.mu.Lock()
			for c := range r.fetching {
				if (*c).Err() == nil {
					r.mu.Unlock()
					return *c, nil
				}
			}
			if r.fetched == nil {
				r.fetched = make(chan struct{})
			}
			fetched = r.fetched
			r.mu.Unlock()
		}
		select {
		case <-fetched:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// fetch says that a tasks/result waits, until leave is called.
func (r *Run) fetch(ctx context.Context) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fetching == nil {
		r.fetching = make(map[*context.Context]struct{})
	}
	r.fetching[&ctx] = struct{}{}
	if r.fetched != nil {
		close(r.fetched)
		r.fetched = nil
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.fetching, &ctx)
	}
}

// ask puts the questions of a result to the client, and returns the answers by the tool's keys.
func (r *Run) ask(questions map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	// The keys of a task are used once. Before the handle the client may have had questions
	// of the same names, so the first round has a number too.
	var prefix string
	record, err := r.change(func(record *Record) bool {
		record.Round++
		prefix = strconv.Itoa(record.Round) + "."
		record.Questions = make(map[string]json.RawMessage, len(questions))
		for key, q := range questions {
			record.Questions[prefix+key] = q
		}
		record.Status, record.Updated = InputRequired, time.Now()
		return true
	})
	if err != nil {
		return nil, err
	}
	return progress.Await(r.ctx, "an answer", func(ctx context.Context) (map[string]json.RawMessage, error) {
		var wait backoff
		for len(record.Questions) > 0 {
			next, err := r.tasks.store.Wait(ctx, r.owner, r.id, record.Revision)
			switch {
			case err != nil && !wait.sleep(ctx):
				return nil, context.Cause(ctx)
			case err != nil:
				continue
			case next.Status.Final():
				return nil, ErrCancelled
			}
			record = next
			wait.reset()
		}
		answers := make(map[string]json.RawMessage, len(record.Answers))
		for key, a := range record.Answers {
			answers[strings.TrimPrefix(key, prefix)] = a
		}
		_, err := r.change(func(record *Record) bool {
			record.Answers = nil
			return true
		})
		return answers, err
	}, r.call.Await...)
}

// respond moves answers to where the run takes them. Those to no question are dropped.
func (r *Record) respond(answers map[string]json.RawMessage) bool {
	var questions, given map[string]json.RawMessage
	for key, a := range answers {
		if _, is := r.Questions[key]; !is {
			continue
		}
		if questions == nil {
			questions, given = maps.Clone(r.Questions), maps.Clone(r.Answers)
			if given == nil {
				given = make(map[string]json.RawMessage)
			}
		}
		delete(questions, key)
		given[key] = a
	}
	if questions == nil { // as it is where the task is final
		return false
	}
	r.Questions, r.Answers, r.Updated = questions, given, time.Now()
	if len(questions) == 0 {
		r.Status, r.Questions = Working, nil
	}
	return true
}

// try changes the record of the task. Where that is final, the error is ErrCancelled. It goes on
// when the run has ended, and is bounded instead, for a store that does not answer.
func (r *Run) try(f func(*Record) bool) (Record, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), tryWait)
	defer cancel()
	var final bool
	record, err := r.tasks.change(ctx, r.owner, r.id, func(record *Record) bool {
		final = record.Status.Final()
		return !final && f(record)
	})
	if final {
		err = ErrCancelled
	}
	return record, err
}

// change is try, again and again while the store cannot be reached: for as long as the record would
// be kept, or until the run ends.
func (r *Run) change(f func(*Record) bool) (Record, error) {
	ctx, cancel := context.WithTimeout(r.ctx, r.tasks.retention)
	defer cancel()
	var wait backoff
	for {
		record, err := r.try(f)
		if err == nil || errors.Is(err, ErrTooLarge) || wait.decided(err) || !wait.sleep(ctx) {
			return record, err
		}
	}
}

// complete stores the outcome, unless the task is final already. It does not give up before a
// Shutdown does: a record that is left behind would be working for as long as the process lives.
func (r *Run) complete(a Answer) {
	size, late := sizeOfAnswer(&a), time.Now().Add(r.tasks.retention)
	var wait backoff
	for {
		err := r.end(a)
		if errors.Is(err, ErrTooLarge) {
			a = Answer{Error: &Error{Code: CodeInternal, Message: fmt.Sprintf("the result of %d bytes is too large to be stored", size)}}
			err = r.end(a)
		}
		if err != nil && !wait.decided(err) && !time.Now().Before(late) {
			// It may be this answer alone that the store does not take.
			err = r.end(Answer{Error: &Error{Code: CodeInternal, Message: "the result could not be stored"}})
		}
		if err == nil || wait.decided(err) || !wait.sleep(r.tasks.ctx) {
			r.finalize()
			if err != nil && !errors.Is(err, ErrCancelled) {
				r.stopping() // nobody will learn of the end
			}
			return
		}
	}
}

// end tries to store an outcome.
func (r *Run) end(a Answer) error {
	_, err := r.try(func(record *Record) bool {
		r.describeAnew(record) // what was too soon after the message before
		record.end(Completed, time.Now())
		record.Answer = &a
		if a.Error != nil {
			record.Status, record.Message = Failed, cut(a.Error.Message)
		} else {
			record.readFailure()
		}
		return true
	})
	return err
}

// over gives back what the run holds.
func (r *Run) over() {
	r.cancel(nil)
	r.tasks.drop(r)
	r.tasks.permits.Release(1)
}

// end makes the record final.
func (r *Record) end(status Status, now time.Time) {
	r.Status, r.Updated, r.Expires = status, now, now.Add(r.Retention)
	r.Questions, r.Answers = nil, nil
}

// Lost returns the record as that of a task whose process is gone: failed, with an error that says
// so. It is for a [Store].
func (r Record) Lost(now time.Time) Record {
	r.end(Failed, now)
	r.Answer = &Answer{Error: &Error{Code: CodeInternal, Message: "the process that ran the task is gone"}}
	r.Message = r.Answer.Error.Message
	return r
}

// A backoff is how long to wait for a store that cannot be reached.
type backoff struct{ tries int }

func (b *backoff) reset() { b.tries = 0 }

// decided reports whether another try would end as this one. A replicated store may not know yet
// what it has stored.
func (b *backoff) decided(err error) bool {
	return errors.Is(err, ErrCancelled) || errors.Is(err, ErrUnknown) && b.tries > 3
}

// sleep reports false where ctx has ended.
func (b *backoff) sleep(ctx context.Context) bool {
	const first, most = 50 * time.Millisecond, 5 * time.Second
	d := most
	if b.tries < 7 {
		d = min(first<<b.tries, most)
	}
	b.tries++
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-wait.C:
		return true
	case <-ctx.Done():
		return false
	}
}
