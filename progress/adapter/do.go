package adapter

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/running"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A Call is one tools/call that may become a task.
type Call struct {
	Tool   string
	Caller Caller
	// Asked reports whether the params have "task". From 2026-07-28 on it is ignored, as the
	// protocol demands.
	Asked bool
	// Soft and TaskOnly are what [policy.Policy.Soft] returns for the tool: how long the call takes
	// before it may become a task, where 0 means never and less means at once; and whether the tool
	// may only be called as a task or a continuation.
	Soft     time.Duration
	TaskOnly bool
	// Continuation says how a call goes on whose client can take no task. Nil means not at all.
	Continuation *Continuation

	// Changed, if it is not nil, is called with the notification for each change of a task after
	// its handle: notifications/tasks/status for Legacy, notifications/tasks for Extension.
	// It is called for one change at a time, and changes may be skipped. Both protocols leave it to
	// the server whether the notifications are sent at all.
	Changed func(method string, params map[string]any)
	// Await says how long the tool's questions wait for an answer, as for [progress.Await].
	Await []progress.AwaitOption
}

// A Func is the whole supervised call: toolcall.Do with t.Observer(), and what makes a result of
// a call that was stopped. t is nil where the call stays plain, and answers are those to the questions
// of the round before.
type Func[R any] func(ctx context.Context, t *Task, answers map[string]json.RawMessage) (R, error)

// Bounds of what a call waits for once its handle is due: createWait for the store to take the
// record, which the result of the tool does not wait for; startWait for that alone, before the tool
// is started, where the handle is due at once; answerWait for the answer of a tool that has already
// returned.
const (
	createWait = 5 * time.Second
	startWait  = time.Second
	answerWait = time.Second
)

// Do runs one call. It returns what run has returned or, if the call has become a task or a
// continuation, the record, whose [Handle] is the answer. It never returns both: with a record, err
// is nil and the value is zero. If tasks is nil, and for a call that can become neither, Do is
// run(ctx, nil, nil).
//
// run is called once, on a goroutine of its own if the call may become a task. encode turns its
// result into JSON, once the call has become a task and not before. If that has Questions, they are
// put to the client, and run is called again with the answers by the keys of the tool. If nobody
// answers in time, encode is called with the error of [progress.Await].
//
// When the handle is due:
//
//   - a client that asks for a task (Legacy) gets it at once, whatever the soft limit;
//   - one that declares tasks (Extension), when the soft limit is reached;
//   - any other, where there is a Continuation, when [Continuation.Soft] is reached.
//
// A result that is due at the same instant as the handle wins, and so does that of a tool that has
// returned, even while the store is still taking the record. A call stays plain if
// [task.WithMaxRunning] is reached, if the store has no room for it, or if the store does not answer
// within 5 s. A store that is away delays no answer: only a tool whose handle is due at once starts
// late, by at most 1 s.
//
// Until the handle, run's context ends with ctx. After it, the context ends by tasks/cancel, with
// [task.ErrCancelled] as the cause, by [task.Tasks.Shutdown], by [EndSession], and with
// [task.ErrLost] if the store has taken the task from this process; so run must not depend on
// anything that ends with the request. If ctx has a deadline before the soft limit, the call stays
// plain.
//
// The error is a [*task.Error] if the call does not go with what the client can take: a tool that
// is never a task and was called as one, or one that can only be called as one and was not.
// A panic of run is a panic of Do, with a [*timeout.PanicError]; after the handle encode gets it.
func Do[R any](ctx context.Context, tasks *task.Tasks, c Call, run Func[R], encode func(R, error) task.Answer) (R, *task.Record, error) {
	var none R
	form, soft, err := c.plan()
	if err != nil {
		return none, nil, err
	}
	plain := func() (R, *task.Record, error) {
		value, err := run(ctx, nil, nil)
		return value, nil, err
	}
	if tasks == nil || form == task.Plain || endsBefore(ctx, soft) {
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
		wait := time.NewTimer(startWait)
		defer wait.Stop()
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
		case <-wait.C:
		}
		x.start(ctx)
		return x.first(created, leave)
	}

	x.start(ctx)
	timer := time.NewTimer(soft)
	defer timer.Stop()
	select {
	case o := <-x.done:
		return x.plain(o)
	case <-timer.C:
	}
	lastOfAll(nil)
	// What is ready together with the limit wins, and select chooses either. A tool that has returned is answered too: it is only that its last notification is on its way.
	if x.now().returned {
		wait := time.NewTimer(answerWait)
		defer wait.Stop()
		select {
		case o := <-x.done:
			return x.plain(o)
		case <-wait.C:
		}
	}
	if len(x.done) == 0 {
		if created, leave := x.create(ctx); created != nil {
			return x.first(created, leave)
		}
	}
	return x.plain(<-x.done)
}

// An execution is a Task with the function that it calls.
type execution[R any] struct {
	*Task
	do     Func[R]
	encode func(R, error) task.Answer
	done   chan outcome[R]
	unlink func() bool // from the request; reports false where that has ended
}

// start runs the tool as one that ends with its request, until unlink is called.
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
		case x.unlink():
			x.hand(*record)
			go x.finish()
			var none R
			return none, record, nil
		default: // the client has gone
			go x.withdraw(record.ID)
		}
		return x.plain(<-x.done)
	case o := <-x.done:
		leave()
		return x.plain(o)
	}
}

// plain answers a call with what the tool has returned.
func (x *execution[R]) plain(o outcome[R]) (R, *task.Record, error) {
	x.unlink()
	x.cancel(nil)
	if o.panicked != nil {
		panic(o.panicked)
	}
	return o.value, nil, o.err
}

// finish sees a run that has become a task through to its end.
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
	e := <-encoded
	if e.err != nil {
		return failure("the result cannot be encoded: " + e.err.Error())
	}
	return readable(e.value)
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

// endsBefore reports whether ctx ends by itself when the soft limit is reached, or earlier. Such a
// deadline is a total of the execution, which it would not be through a link.
func endsBefore(ctx context.Context, soft time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && soft >= 0 && time.Until(deadline) <= soft
}

// Refused returns the error with which [Do] refuses the call, or nil, for a caller that has to know it
// before Do is called.
func (c Call) Refused() error {
	_, _, err := c.plan()
	return err
}

// plan returns what the call is answered with when soft has passed and it has not ended: at once
// where soft is negative.
func (c *Call) plan() (form task.Form, soft time.Duration, _ error) {
	isTask := c.Soft != 0 || c.TaskOnly
	soft = c.Soft
	if soft == 0 {
		soft = -1
	}
	switch {
	case c.Caller.legacy() && c.Asked && !isTask:
		return "", 0, &task.Error{Code: CodeMethodNotFound, Message: fmt.Sprintf("tool %q cannot be called as a task", c.Tool)}
	case c.Caller.legacy() && c.Asked:
		return task.Legacy, -1, nil
	case c.Caller.modern() && c.Caller.Declared && isTask:
		return task.Extension, soft, nil
	}
	if c.Continuation != nil {
		if soft := c.Continuation.Soft(c.Soft); soft > 0 {
			return task.Continued, soft, nil
		}
	}
	switch {
	case c.TaskOnly && c.Caller.modern():
		return "", 0, missingCapability()
	case c.TaskOnly:
		return "", 0, &task.Error{Code: CodeMethodNotFound, Message: fmt.Sprintf("tool %q can only be called as a task", c.Tool)}
	}
	return task.Plain, 0, nil
}

// An outcome is how a function has ended.
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

// readable returns an answer that can be stored and sent: a tool may put what is no JSON into one,
// and no record with that could ever be written, so that the task would never end.
func readable(a task.Answer) task.Answer {
	broken := func(what string) task.Answer {
		return failure(what + " is no JSON")
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
				return broken(fmt.Sprintf("the question %q", running.Shorten(key)))
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
		select {
		case out <- &record:
		case <-left:
			t.withdraw(record.ID)
		}
	}()
	return out, func() { close(left) }
}

// record is that of a task that begins now.
func (t *Task) record() task.Record {
	now := time.Now()
	record := task.Record{
		ID: rand.Text(), Owner: t.run.Owner, Form: t.form, Tool: t.call.Tool, Version: t.call.Caller.Version,
		Status: task.Working, Started: t.began, Created: now, Soft: t.soft,
		Poll: t.core.Poll, Retention: t.core.Retention,
	}
	if t.form == task.Continued {
		record.WaitTool = t.call.Continuation.Name()
	}
	t.describe(&record)
	record.Updated = now
	return record
}
