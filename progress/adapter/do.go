package adapter

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Bounds of what a call waits for once its handle is due: createWait for the store to take the
// record, which the result of the tool does not wait for; startWait for that alone, before the tool
// is started, where the handle is due at once; answerWait for the answer of a tool that has already
// returned.
const (
	startWait  = time.Second
	answerWait = time.Second
	// encodeWait is how long a task waits for its result to become JSON: code of the tool's may be part of that.
	encodeWait = 10 * time.Second
)

// Do runs one call. It returns what run has returned or, if the call has become a task or a continuation, what handle
// returns for the record and the fields of the answer; see [task.Form]. If tasks is nil, and for a call that can become
// neither, Do is run(ctx, nil, nil). The package page says when a handle is due, and what it waits for.
//
// run is the whole supervised call: toolcall.Do with its context, and the code that makes a result of a call that
// was stopped; answers has the answers to the questions of the previous round. Each round calls run once, on a
// goroutine of its own if the call may become a task. It has to end with its context, as toolcall.Do does: where the
// call does not become a task, Do waits for it.
//
// encode turns the results of run into JSON, once the call has become a task and not before, within 10 s, or else
// the task fails. If that JSON has Questions, they are put to the client, and run is called again with the answers
// by the keys of the tool. If nobody answers in time, encode is called with the error of [progress.Await].
//
// Until the handle, run's context ends with ctx, or with [toolcall.ErrClientTimeout] as the cause if Within passes
// and no handle can be given. After the handle, it ends at a tasks/cancel or a cancel of the wait tool, with
// [task.ErrCancelled] as the cause, at [task.Tasks.Shutdown], for a continuation at [EndSession], and, with
// [task.ErrLost] as the cause, when the store has taken the task from this process; so run must not depend on
// anything that ends with the request.
//
// The error is a [*task.Error] if the call does not suit its tool: the call asks for a task and the tool never becomes
// one, or the tool only runs as a task or a continuation and the client can be given neither. A panic of run becomes a
// panic of Do, with a [*timeout.PanicError]; after the handle, encode gets the PanicError. Do is safe for concurrent
// use.
func Do[R any](
	ctx context.Context, tasks *task.Tasks, c Call,
	run func(ctx context.Context, t *Task, answers map[string]json.RawMessage) (R, error), encode func(R, error) task.Answer,
	handle func(r *task.Record, fields map[string]any) (R, error),
) (R, error) {
	value, record, err := do(ctx, tasks, c, run, encode)
	if record != nil {
		return handle(record, handleFields(record))
	}
	return value, err
}

// do returns what run has returned, or the record of the call.
func do[R any](
	ctx context.Context, tasks *task.Tasks, c Call,
	run func(ctx context.Context, t *Task, answers map[string]json.RawMessage) (R, error), encode func(R, error) task.Answer,
) (R, *task.Record, error) {
	var none R
	form, soft, err := c.plan()
	if err != nil {
		return none, nil, err
	}
	plain := func() (R, *task.Record, error) {
		value, err := run(ctx, nil, nil)
		return value, nil, err
	}
	if tasks == nil || form == task.Plain || c.endsBefore(ctx, soft) {
		return plain()
	}
	x := &execution[R]{Task: newTask(ctx, tasks.Core(), c, form, soft), do: run, encode: encode, done: make(chan outcome[R], 1)}
	if soft < 0 {
		created, leave := x.create(ctx)
		if created == nil {
			x.cancel(nil)
			return plain()
		}
		// The tool starts after the handle, where the store answers: a question that the client gets
		// before the handle belongs to no task that it knows.
		select {
		case record := <-created:
			if record == nil {
				x.cancel(nil)
				return plain()
			}
			x.hand(*record)
			go x.call(nil)
			go x.finish()
			return none, record, nil
		case <-time.After(startWait):
		}
		x.start(ctx)
		x.answerBy(c.Within.Left)
		return x.first(created, leave)
	}

	x.start(ctx)
	x.answerBy(c.Within.Left)
	timer := time.NewTimer(x.untilDue(soft))
	defer timer.Stop()
	for due := false; !due; {
		select {
		case o := <-x.done:
			return x.plain(o)
		case <-timer.C:
		}
		left := x.untilDue(soft)
		if due = left <= 0; !due {
			timer.Reset(left)
		}
	}
	if elapsed := time.Since(x.began); elapsed < soft { // it is silent
		x.soft = elapsed
		x.answerBy(elapsed)
	}
	// A tool that has returned is answered, too: it is only that its last notification is on its way.
	if x.now().returned {
		select {
		case o := <-x.done:
			return x.plain(o)
		case <-time.After(answerWait):
		}
	}
	if len(x.done) == 0 { // select chooses either where both are ready
		if created, leave := x.create(ctx); created != nil {
			return x.first(created, leave)
		}
	}
	return x.plain(<-x.done)
}

// An execution is a Task with the function that it calls.
type execution[R any] struct {
	*Task
	do     func(ctx context.Context, t *Task, answers map[string]json.RawMessage) (R, error)
	encode func(R, error) task.Answer
	done   chan outcome[R]
	unlink func() bool // from the request; reports false where that has ended
	late   *time.Timer // of answerBy
}

// untilDue returns how long it is until the handle is due.
func (x *execution[R]) untilDue(soft time.Duration) time.Duration {
	left := soft - time.Since(x.began)
	if silence := x.Task.call.Within.Idle; silence > 0 {
		silent := time.Since(x.began)
		if exec := x.now().exec; exec != nil {
			silent = timeout.FromContext(exec).Snapshot().SinceBeat
		}
		left = min(left, silence-silent)
	}
	return left
}

// answerBy stops the call if it gets no handle in time, for example because the store cannot be reached. by is when
// its answer is due. The end of the request or a handle prevents that; see inTime.
func (x *execution[R]) answerBy(by time.Duration) {
	if by <= 0 {
		return
	}
	spare := min(by/5, 10*time.Second) / 2 // half of the margin, which is a sixth of the whole
	if x.late != nil {
		x.late.Stop()
	}
	x.late = time.AfterFunc(by+spare-time.Since(x.began), func() { x.cancel(errNoHandle) })
}

// inTime prevents the stop of answerBy, and reports whether it was in time for that.
func (x *execution[R]) inTime() bool { return x.late == nil || x.late.Stop() }

var errNoHandle = fmt.Errorf("%w: the client has said how long it waits, and the call could not be continued", toolcall.ErrClientTimeout)

// start runs the tool. Until unlink is called, the tool is cancelled when its request ends.
func (x *execution[R]) start(ctx context.Context) {
	x.unlink = context.AfterFunc(ctx, func() { x.cancel(context.Cause(ctx)) })
	go x.call(nil)
}

func (x *execution[R]) call(answers map[string]json.RawMessage) {
	guard(func() (R, error) { return x.do(x.ctx, x.Task, answers) }, x.done)
}

// first answers a call with what comes first: its handle or its result. The run is linked to its
// request until then, so that a client that leaves while the store is away aborts it as ever.
func (x *execution[R]) first(created <-chan *task.Record, leave func()) (R, *task.Record, error) {
	select {
	case record := <-created:
		switch {
		case record == nil:
		case len(x.done) == 0 && x.inTime() && x.unlink():
			x.hand(*record)
			go x.finish()
			var none R
			return none, record, nil
		default: // the result is there, or the client has gone, or it was too late
			go x.withdraw(record.ID)
		}
		return x.plain(<-x.done)
	case o := <-x.done:
		leave()
		return x.plain(o)
	}
}

// plain answers a call with the result of the tool.
func (x *execution[R]) plain(o outcome[R]) (R, *task.Record, error) {
	x.inTime()
	x.unlink()
	x.cancel(nil)
	if o.panicked != nil {
		panic(o.panicked)
	}
	return o.value, nil, o.err
}

// finish waits for the end of a run that has become a task, and stores the outcome.
func (x *execution[R]) finish() {
	defer x.over()
	for o := range x.done {
		a := x.answer(o)
		if len(a.Questions) == 0 {
			x.complete(a)
			return
		}
		answers, err := x.ask(a.Questions)
		if err != nil {
			x.done <- outcome[R]{err: err}
			continue
		}
		go x.call(answers)
	}
}

// answer encodes an outcome.
func (x *execution[R]) answer(o outcome[R]) task.Answer {
	encoded := make(chan outcome[task.Answer], 1)
	go guard(func() (task.Answer, error) { return x.encode(o.value, o.err), nil }, encoded)
	select {
	case e := <-encoded:
		if e.err != nil {
			return failure("the result cannot be encoded: " + e.err.Error())
		}
		return readable(e.value)
	case <-time.After(encodeWait):
		return failure(fmt.Sprintf("the result was not encoded within %v", encodeWait))
	}
}

// An outcome describes how a function has ended.
type outcome[R any] struct {
	value    R
	err      error
	panicked *timeout.PanicError
}

// guard calls f, which may panic or call runtime.Goexit, and delivers how it has ended.
func guard[R any](f func() (R, error), done chan<- outcome[R]) {
	o := outcome[R]{err: timeout.ErrGoexit}
	defer func() {
		if v := recover(); v != nil {
			o.panicked = &timeout.PanicError{Value: v, Stack: debug.Stack()}
			o.err = o.panicked
		}
		done <- o
	}()
	value, err := f()
	o = outcome[R]{value: value, err: err}
}

// readable returns an answer that can be stored and sent. It replaces an answer in which a tool has put invalid JSON:
// a record with it could never be written, and the task would never end.
func readable(a task.Answer) task.Answer {
	broken := func(what string) task.Answer {
		return failure(what + " is not JSON")
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
				return broken(fmt.Sprintf("the question %q", texts.Short(key, 64)))
			}
		}
	case len(a.Result) > 0 && !json.Valid(a.Result):
		return broken("the result")
	}
	return a
}

// create begins to store the record of the run, on another goroutine. created gets the record, or nil if it was not
// stored; it is nil if no more tasks may be created. A caller that no longer waits for the record calls leave.
func (t *Task) create(ctx context.Context) (created <-chan *task.Record, leave func()) {
	if !t.core.Running.Begin(&t.run) {
		return nil, nil
	}
	out, left := make(chan *task.Record), make(chan struct{})
	record := t.record()
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), createWait)
		record, err := t.core.Store.Create(ctx, record)
		cancel()
		if err != nil {
			t.core.Running.End(&t.run)
			close(out)
			return
		}
		select { // never both: only the receiver leaves
		case out <- &record:
		case <-left:
			t.withdraw(record.ID)
		}
	}()
	return out, func() { close(left) }
}

// record returns the record of a task that begins now.
func (t *Task) record() task.Record {
	now := time.Now()
	record := task.Record{
		ID: rand.Text(), Owner: t.run.Owner, Form: t.form, Tool: t.call.Tool, Version: t.call.Caller.Version,
		Status: task.Working, Started: t.began, Created: now, Soft: t.soft,
		Poll: t.core.Poll, Retention: t.core.Retention,
	}
	if ttl := t.call.granted(t.core.Poll, t.core.Retention); ttl > 0 {
		record.TTL, record.Retention = ttl, ttl
	}
	if t.form == task.Continued {
		record.WaitTool = t.call.Continuation.name()
	}
	t.describe(&record)
	record.Updated = now
	return record
}
