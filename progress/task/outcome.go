package task

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// tryWait bounds one attempt to store something, a large result included.
const tryWait = time.Minute

// try changes the record of the task. Where that is final, the error is what has ended it. It goes on
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
		err = record.ended()
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
			if err != nil && !isFinal(err) {
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
	return isFinal(err) || errors.Is(err, ErrUnknown) && b.tries > 3
}

// isFinal reports whether err says that somebody else has ended the task.
func isFinal(err error) bool { return errors.Is(err, ErrCancelled) || errors.Is(err, ErrLost) }

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
