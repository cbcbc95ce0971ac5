package adapter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// tryWait bounds one attempt to store something, a large result included.
const tryWait = time.Minute

// A write is a change of a record that is not final.
type write func(*task.Record)

// persist changes the record of the task, and tries again while the store cannot be reached, until ctx ends: the
// attempt that is under way then is the last. Where the record is final, the error is what has ended it. If instead
// is not nil, it may return a change to try in place of one that has failed.
func (t *Task) persist(ctx context.Context, f write, instead func(error) write) (task.Record, error) {
	return persist(ctx, t.core.Store, t.run.Owner, t.id(), f, instead)
}

func persist(ctx context.Context, store task.Store, owner, id string, f write, instead func(error) write) (task.Record, error) {
	attempt := func(f write) (task.Record, error) {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), tryWait)
		defer cancel()
		var final bool
		record, err := change(limited, store, owner, id, func(r *task.Record) bool {
			if final = r.Status.Final(); !final {
				f(r)
			}
			return !final
		})
		if final {
			err = ended(&record)
		}
		return record, err
	}
	try := newAttempts()
	for {
		record, err := attempt(f)
		if err != nil && instead != nil && !try.decided(err) {
			if other := instead(err); other != nil {
				record, err = attempt(other)
			}
		}
		if err == nil || instead == nil && errors.Is(err, task.ErrTooLarge) || try.decided(err) || !try.wait(ctx) {
			return record, err
		}
	}
}

// complete stores the outcome, unless the task is final already. It does not give up before a Shutdown does:
// otherwise the record would stay "working" for as long as the process lives.
func (t *Task) complete(a task.Answer) {
	with := func(a task.Answer) write {
		return func(r *task.Record) {
			t.describe(r) // what was too soon after the message before
			finish(r, a)
		}
	}
	// A model that gets the answer may never have got the status message.
	instead := func(message string) write {
		return func(r *task.Record) {
			t.describe(r)
			text := message
			if last := update(r).String(); last != "" {
				text += "; last: " + last
			}
			finish(r, failure(text))
		}
	}
	late := time.Now().Add(t.core.Retention)
	_, err := t.persist(t.core.Running.Context(), with(a), func(err error) write {
		switch {
		case errors.Is(err, task.ErrTooLarge):
			return instead(fmt.Sprintf("the result of %d bytes is too large to be stored", size(a)))
		case !time.Now().Before(late): // it may be this answer alone that the store does not take
			return instead("the result could not be stored")
		}
		return nil
	})
	t.change(func(s *state) { s.phase = final })
	if errors.Is(err, task.ErrCancelled) {
		t.attach(a)
	}
	if err != nil && !isFinal(err) {
		t.now().unfollow() // nobody will learn of the end
	}
}

// attach adds what the tool has returned to a record that a client has cancelled (SPEC 11.5). The status stays,
// and so does the time at which the record expires.
func (t *Task) attach(a task.Answer) {
	attempt := func(a task.Answer) error {
		limited, cancel := context.WithTimeout(context.WithoutCancel(t.core.Running.Context()), tryWait)
		defer cancel()
		_, err := change(limited, t.core.Store, t.run.Owner, t.id(), func(r *task.Record) bool {
			if r.Status != task.Cancelled || r.Answer != nil {
				return false
			}
			r.Answer = &a
			return true
		})
		return err
	}
	try := newAttempts()
	for late := time.Now().Add(cancelledWait); ; {
		err := attempt(a)
		if errors.Is(err, task.ErrTooLarge) {
			err = attempt(failure(fmt.Sprintf("%v; the result of %d bytes is too large to be stored", task.ErrCancelled, size(a))))
		}
		if err == nil || errors.Is(err, task.ErrTooLarge) || try.decided(err) || !time.Now().Before(late) || !try.wait(t.core.Running.Context()) {
			return
		}
	}
}

// cancelledWait is the time for which a client waits for the result of a cancelled tool after the grace of the tool, and
// the time for which storing that result is tried again.
const cancelledWait = 3 * time.Second

// awaitAnswer returns the record of a cancelled task as soon as it has the result of the tool, or when the wait for
// that is over. local is the task, if it runs in this process.
func awaitAnswer(ctx context.Context, store task.Store, local *Task, r task.Record) (task.Record, error) {
	limited, cancel := context.WithTimeout(ctx, local.grace()+cancelledWait)
	defer cancel()
	for r.Status == task.Cancelled && r.Answer == nil {
		next, err := store.Wait(limited, r.Owner, r.ID, r.Revision)
		switch {
		case err == nil:
			r = next
		case ctx.Err() != nil:
			return r, err
		default:
			return r, nil
		}
	}
	return r, nil
}

// grace is how long the tool may take to return after it was cancelled. In another process it is not known.
func (t *Task) grace() time.Duration {
	if t != nil {
		if exec := t.now().exec; exec != nil {
			return max(timeout.FromContext(exec).Snapshot().Limits.Grace, 0)
		}
	}
	return timeout.DefaultGrace
}

// withdraw ends the record of a run that does not become a task. No client knows its id.
func (t *Task) withdraw(id string) {
	defer t.core.Running.End(&t.run)
	_, _ = persist(t.core.Running.Context(), t.core.Store, t.run.Owner, id, func(r *task.Record) {
		end(r, task.Cancelled)
		r.Message = "the call was answered with its result"
	}, nil)
}

// finish writes the outcome of the call into the record, which becomes final.
func finish(r *task.Record, a task.Answer) {
	end(r, task.Completed)
	r.Answer = &a
	if a.Error != nil {
		r.Status, r.Message = task.Failed, cut(a.Error.Message)
	} else {
		readFailure(r)
	}
}

// end makes the record final.
func end(r *task.Record, status task.Status) {
	r.Status, r.Updated = status, time.Now()
	r.Expires = r.Updated.Add(r.Retention)
	r.Questions, r.Answers = nil, nil
}

func failure(message string) task.Answer {
	return task.Answer{Error: &task.Error{Code: codeInternal, Message: message}}
}

func size(a task.Answer) int {
	if a.Error != nil {
		return len(a.Error.Message) + len(a.Error.Data)
	}
	return len(a.Result)
}
