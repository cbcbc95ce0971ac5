package task

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A Call is one tools/call.
type Call struct {
	Tool   string
	Client Client
	// Asked is whether the params have "task". From 2026-07-28 on it is ignored, as the protocol
	// wants it.
	Asked bool
	// Soft and TaskOnly are what [policy.Policy.Soft] returns for the tool: after how long
	// the call may become a task, 0 for never and less for at once; and that it may be called as a
	// task or a continuation only.
	Soft     time.Duration
	TaskOnly bool
	// Continuation says how a call goes on whose client can take no task, nil for not at all.
	Continuation *Continuation

	// Changed, if it is not nil, is called with the notification for each change of a task after
	// its handle: notifications/tasks/status for Legacy, notifications/tasks for Extension.
	// Calls come one after the other, and may be skipped. Both protocols leave it to the server
	// whether they are sent at all.
	Changed func(method string, params map[string]any)
	// Await is for how long the tool's questions wait for an answer, as for [progress.Await].
	Await []progress.AwaitOption
}

// Bounds of what a call waits for once its handle is due: createWait for the store to take the
// record, which the result of the tool does not wait for; startWait for that alone, before the tool
// is started, where the handle is due at once; answerWait for the answer of a tool that has already
// returned.
const (
	createWait = 5 * time.Second
	startWait  = time.Second
	answerWait = time.Second
)

// Do runs one call, and returns what run has returned or, where the call becomes a task or a
// continuation, the record, whose [Record.Handle] is the answer. It never returns both: err
// is nil then, and the value is zero. A nil t, and a call that can become neither, is run(ctx, nil).
//
// run is the whole supervised call: toolcall.Do, and what makes a result of a call that was
// stopped. It is called once, on a goroutine of its own where the call may become a task. encode
// turns what it returns into JSON, when the call has become one and not before. Where that has
// Questions, they are put to the client, and run is called again, with the answers by the keys of
// the tool. If nobody answers in time, encode is called with the error of [progress.Await].
//
// When the handle is due:
//
//   - a client that asks for a task (Legacy) gets it at once, whatever the soft limit;
//   - one that declares tasks (Extension), when the soft limit is reached;
//   - any other, where there is a Continuation, when [Continuation.Soft] is reached.
//
// A result that falls due together with the handle wins, and so does one whose tool has returned,
// also while the store is still taking the record. A call stays plain where [WithMaxRunning] is
// reached, where the store has no room for it, or where the store does not answer within 5 s.
// A store that is away delays no answer: only a tool whose handle is due at once starts late,
// by at most 1 s.
//
// Until the handle, run's context ends with ctx. From then on it does not, and ends by
// tasks/cancel, with [ErrCancelled] as the cause, by [Tasks.Shutdown], by [Tasks.EndSession], and
// with [ErrLost] where the store has taken the task from this process; so hold nothing that ends with the request. [FromContext] returns the run.
// A ctx with a deadline before the soft limit stays as it is, and the call plain.
//
// The error is an [*Error] where the call does not go with what the client can take: a tool that
// is never a task and was called as one, or one that can only be called as one and was not.
// A panic of run is a panic of Do, with a [*timeout.PanicError]; after the handle encode gets it.
func Do[R any](ctx context.Context, t *Tasks, c Call,
	run func(ctx context.Context, answers map[string]json.RawMessage) (R, error),
	encode func(R, error) Answer,
) (R, *Record, error) {
	var none R
	form, soft, err := c.plan()
	if err != nil {
		return none, nil, err
	}
	if FromContext(ctx) != nil {
		ctx = context.WithValue(ctx, runKey{}, (*Run)(nil)) // a server that a tool runs itself
	}
	if t == nil || form == Plain || endsBefore(ctx, soft) {
		value, err := run(ctx, nil)
		return value, nil, err
	}
	r := &Run{tasks: t, call: c, form: form, soft: max(soft, 0), began: time.Now(), owner: c.Client.owner(form), telling: make(chan struct{}, 1)}
	detached, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	r.cancel = cancel
	r.ctx = r.Context(detached)
	done := make(chan outcome[R], 1)

	if soft < 0 {
		created, leave := r.create(ctx)
		if created == nil {
			cancel(nil)
			value, err := run(ctx, nil)
			return value, nil, err
		}
		// The tool starts after the handle, where the store answers: a question that the client gets
		// before the handle belongs to no task that it knows.
		wait := time.NewTimer(startWait)
		defer wait.Stop()
		select {
		case record := <-created:
			if record == nil {
				cancel(nil)
				value, err := run(ctx, nil)
				return value, nil, err
			}
			r.take(*record)
			go guard(r.ctx, nil, run, done)
			go follow(r, run, encode, done)
			return none, record, nil
		case <-wait.C:
		}
		unlink := link(ctx, cancel)
		go guard(r.ctx, nil, run, done)
		return first(r, created, leave, unlink, run, encode, done)
	}

	unlink := link(ctx, cancel)
	go guard(r.ctx, nil, run, done)
	timer := time.NewTimer(soft)
	defer timer.Stop()
	select {
	case o := <-done:
		return plain(o, unlink, cancel)
	case <-timer.C:
	}
	lastOfAll(nil)
	// What is ready together with the limit wins, and select chooses either. A tool that has
	// returned is answered too: it is only that its last notification is on its way.
	if r.returned() {
		wait := time.NewTimer(answerWait)
		defer wait.Stop()
		select {
		case o := <-done:
			return plain(o, unlink, cancel)
		case <-wait.C:
		}
	}
	if len(done) == 0 {
		if created, leave := r.create(ctx); created != nil {
			return first(r, created, leave, unlink, run, encode, done)
		}
	}
	return plain(<-done, unlink, cancel)
}

// first answers a call with what comes first: its handle or its result. The run is linked to its
// request until then, so that a client that leaves while the store is away aborts it as ever.
func first[R any](r *Run, created <-chan *Record, leave func(), unlink func() bool,
	run func(ctx context.Context, answers map[string]json.RawMessage) (R, error),
	encode func(R, error) Answer, done chan outcome[R],
) (R, *Record, error) {
	select {
	case record := <-created:
		switch {
		case record == nil:
		case unlink():
			r.take(*record)
			go follow(r, run, encode, done)
			var none R
			return none, record, nil
		default: // the client has gone
			go r.withdraw(*record)
		}
		return plain(<-done, unlink, r.cancel)
	case o := <-done:
		leave()
		return plain(o, unlink, r.cancel)
	}
}

// follow sees a run that has become a task through to its end.
func follow[R any](r *Run,
	run func(ctx context.Context, answers map[string]json.RawMessage) (R, error),
	encode func(R, error) Answer, done chan outcome[R],
) {
	defer r.over()
	for o := range done {
		a := answer(encode, o)
		if len(a.Questions) == 0 {
			r.complete(a)
			return
		}
		answers, err := r.ask(a.Questions)
		if err != nil {
			done <- outcome[R]{err: err}
			continue
		}
		go guard(r.ctx, answers, run, done)
	}
}

// plain returns what run has returned.
func plain[R any](o outcome[R], unlink func() bool, cancel context.CancelCauseFunc) (R, *Record, error) {
	unlink()
	cancel(nil)
	if o.panicked != nil {
		panic(o.panicked)
	}
	return o.value, nil, o.err
}

// link ends a run with the request that it came with, until unlink is called. That reports false
// where the request has ended.
func link(ctx context.Context, cancel context.CancelCauseFunc) (unlink func() bool) {
	return context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
}

// endsBefore reports whether ctx ends by itself when the soft limit is reached, or earlier. Such a
// deadline is a total of the execution, which it would not be through a link.
func endsBefore(ctx context.Context, soft time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && soft >= 0 && time.Until(deadline) <= soft
}

// lastOfAll returns at the instant at which it was called, when what falls due at that instant has
// had its turn, or when done is closed.
//
// Timers of one instant fire in any order. On a fake clock, which stands still until nothing is
// left to do, one that is set when another has fired comes after all that are due with it, but if
// its goroutine has overtaken the loop that fires them. To be last here it would have to win that
// race each time. Such a timer must be in the heap before, or it fires where it is set: hence the
// Reset. Rejected: a nanosecond more, which is a nanosecond late.
func lastOfAll(done <-chan struct{}) {
	const turns = 8
	passed := make(chan struct{}, turns)
	for range turns {
		time.AfterFunc(time.Hour, func() { passed <- struct{}{} }).Reset(0)
		select {
		case <-passed:
		case <-done:
			return
		}
	}
}

// plan returns what the call is answered with when soft has passed and it has not ended: at once
// where soft is negative.
func (c *Call) plan() (form Form, soft time.Duration, _ error) {
	isTask := c.Soft != 0 || c.TaskOnly
	soft = c.Soft
	if soft == 0 {
		soft = -1
	}
	switch {
	case c.Client.legacy() && c.Asked && !isTask:
		return "", 0, &Error{Code: CodeMethodNotFound, Message: fmt.Sprintf("tool %q cannot be called as a task", c.Tool)}
	case c.Client.legacy() && c.Asked:
		return Legacy, -1, nil
	case c.Client.modern() && c.Client.Declared && isTask:
		return Extension, soft, nil
	}
	if c.Continuation != nil {
		if soft := c.Continuation.Soft(c.Soft); soft > 0 {
			return Continued, soft, nil
		}
	}
	switch {
	case c.TaskOnly && c.Client.modern():
		return "", 0, missingCapability()
	case c.TaskOnly:
		return "", 0, &Error{Code: CodeMethodNotFound, Message: fmt.Sprintf("tool %q can only be called as a task", c.Tool)}
	}
	return Plain, 0, nil
}

// An outcome is how a run has ended.
type outcome[R any] struct {
	value    R
	err      error
	panicked *timeout.PanicError
}

// guard calls run, which may panic or call runtime.Goexit, and delivers how it has ended.
func guard[R any](ctx context.Context, answers map[string]json.RawMessage,
	run func(context.Context, map[string]json.RawMessage) (R, error), done chan<- outcome[R],
) {
	o := outcome[R]{err: timeout.ErrGoexit}
	defer func() {
		if v := recover(); v != nil {
			o.panicked = &timeout.PanicError{Value: v, Stack: debug.Stack()}
			o.err = o.panicked
		}
		done <- o
	}()
	value, err := run(ctx, answers)
	o = outcome[R]{value: value, err: err}
}

// answer encodes an outcome.
func answer[R any](encode func(R, error) Answer, o outcome[R]) (a Answer) {
	encoded := make(chan outcome[Answer], 1)
	go guard(context.Background(), nil, func(context.Context, map[string]json.RawMessage) (Answer, error) { return encode(o.value, o.err), nil }, encoded)
	e := <-encoded
	if e.err != nil {
		return Answer{Error: &Error{Code: CodeInternal, Message: "the result cannot be encoded: " + e.err.Error()}}
	}
	return e.value.readable()
}

// readable returns an answer that can be stored and sent: a tool may put what is no JSON into one,
// and no record with that could ever be written, so that the task would never end.
func (a Answer) readable() Answer {
	broken := func(what string) Answer {
		return Answer{Error: &Error{Code: CodeInternal, Message: what + " is no JSON"}}
	}
	switch {
	case a.Error != nil:
		if len(a.Error.Data) > 0 && !json.Valid(a.Error.Data) {
			e := *a.Error
			e.Data, _ = json.Marshal(string(e.Data))
			a.Error = &e
		}
	case len(a.Questions) > 0:
		for key, q := range a.Questions {
			if !json.Valid(q) {
				return broken(fmt.Sprintf("the question %q", shorten(key)))
			}
		}
	case len(a.Result) > 0 && !json.Valid(a.Result):
		return broken("the result")
	}
	return a
}

// create stores the record of the run, beside the call, and delivers it: nil where it was not
// stored. It returns nil where there may be no other task. Whoever no longer waits for the record
// calls leave.
func (r *Run) create(ctx context.Context) (created <-chan *Record, leave func()) {
	t := r.tasks
	if !t.permits.TryAcquire(1) {
		return nil, nil
	}
	if !t.begin(r) {
		t.permits.Release(1)
		return nil, nil
	}
	out, left := make(chan *Record), make(chan struct{})
	record := r.record()
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), createWait)
		record, err := t.store.Create(ctx, record)
		cancel()
		if err != nil {
			t.abandon(r)
			close(out)
			return
		}
		select {
		case out <- &record:
		case <-left:
			r.withdraw(record)
		}
	}()
	return out, func() { close(left) }
}

// withdraw ends a record, of which no client knows the id, of a run that stays plain.
func (r *Run) withdraw(record Record) {
	t := r.tasks
	defer t.abandon(r)
	record.end(Cancelled, time.Now())
	record.Message = "the call was answered with its result"
	var wait backoff
	for {
		ctx, cancel := context.WithTimeout(t.ctx, tryWait)
		_, err := t.store.Update(ctx, record)
		cancel()
		if err == nil || isConflict(err) || errors.Is(err, ErrUnknown) || !wait.sleep(t.ctx) {
			return
		}
	}
}

// take makes the run that of a task whose handle is to be sent: from now on nothing else is sent
// for an Extension or a continuation.
func (r *Run) take(record Record) {
	r.mute()
	r.handed(record)
	if !r.tasks.add(r) {
		r.cancel(toolcall.ErrShutdown)
	}
}

// record is that of a task that begins now.
func (r *Run) record() Record {
	now := time.Now()
	record := Record{
		ID: rand.Text(), Owner: r.owner, Form: r.form, Tool: r.call.Tool, Version: r.call.Client.Version,
		Status: Working, Started: r.began, Created: now, Updated: now, Soft: r.soft,
		Poll: r.tasks.poll, Retention: r.tasks.retention,
	}
	if r.form == Continued {
		record.WaitTool = r.call.Continuation.Name()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.describe(&record)
	return record
}

func isConflict(err error) bool { return errors.Is(err, ErrConflict) }
