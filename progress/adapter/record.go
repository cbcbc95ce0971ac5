package adapter

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/task"
)

// create stores the record of the run, beside the call, and delivers it: nil where it was not
// stored. It returns nil where there may be no other task. A caller that no longer waits for the
// record calls leave.
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
	if ttl := t.call.granted(t.core.Poll, t.core.Retention); ttl > 0 {
		record.TTL, record.Retention = ttl, ttl
	}
	if t.form == task.Continued {
		record.WaitTool = t.call.Continuation.Name()
	}
	t.describe(&record)
	record.Updated = now
	return record
}
