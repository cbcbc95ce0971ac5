package adapter

import (
	"context"
	"errors"
	"fmt"

	"github.com/tooldeadline/tooldeadline/internal/running"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// keepCancel cancels a task as soon as the store, which has failed with err, can be reached again: its client may not
// ask again, and the tool would run on. It returns err with a text that says so. A cancel that is kept does not count
// as a running call; the number of kept cancels is bounded, and a shutdown ends them.
func keepCancel(core running.Core[task.Store], owner, id string, err error) error {
	if errors.Is(err, task.ErrUnknown) {
		return err
	}
	kept := fmt.Sprintf("cancel %s of %s", id, owner) // no task has a space in its id
	if core.Running.Find(owner, kept) == nil {
		ctx, cancel := context.WithCancelCause(core.Running.Context())
		call := &running.Call{Owner: owner, Cancel: cancel}
		if !core.Running.BeginErrand(call) {
			cancel(nil)
			return err
		}
		if !core.Running.Handed(call, kept, false) {
			cancel(toolcall.ErrShutdown)
		}
		go func() {
			defer core.Running.End(call)
			defer cancel(nil)
			limited, stop := context.WithTimeout(ctx, core.Retention)
			defer stop()
			_, _ = persist(limited, core.Store, owner, id, cancelled, nil)
		}()
	}
	return fmt.Errorf("%w (the task is cancelled when it can be reached again)", err)
}

// cancelled changes a record to that of a task that its client has cancelled.
func cancelled(r *task.Record) {
	end(r, task.Cancelled)
	r.Message, r.Answer = task.ErrCancelled.Error(), nil
}
