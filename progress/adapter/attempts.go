package adapter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/backoff"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// An attempts paces the tries of a change while the store cannot be reached.
type attempts struct {
	waits backoff.Waits
	tries int
}

func newAttempts() *attempts {
	return &attempts{waits: backoff.Waits{First: 50 * time.Millisecond, Max: 5 * time.Second, Factor: 2}}
}

// decided reports whether another try would end in the same way. After other errors a replicated store may not know
// yet what it has stored.
func (a *attempts) decided(err error) bool {
	return isFinal(err) || errors.Is(err, task.ErrUnknown) && a.tries > 3
}

// wait waits until the next try is due. It reports false if ctx has ended.
func (a *attempts) wait(ctx context.Context) bool {
	a.tries++
	return backoff.Sleep(ctx, a.waits.Next())
}

func (a *attempts) reset() {
	a.tries = 0
	a.waits.Reset()
}

// change applies f to a record and stores the result. If the record has changed meanwhile, change tries
// again. It ends when the result is stored, or f reports that there is nothing to change.
func change(ctx context.Context, store task.Store, owner, id string, f func(*task.Record) bool) (task.Record, error) {
	for {
		r, err := store.Get(ctx, owner, id)
		if err != nil || !f(&r) {
			return r, err
		}
		stored, err := store.Update(ctx, r)
		if !errors.Is(err, task.ErrConflict) {
			return stored, err
		}
	}
}

// isFinal reports whether err says that the task has been ended by another process or request.
func isFinal(err error) bool {
	return errors.Is(err, task.ErrCancelled) || errors.Is(err, task.ErrLost)
}

// ended returns the cause with which a run is cancelled when its record r has become final.
func ended(r *task.Record) error {
	if r.Status == task.Cancelled {
		return task.ErrCancelled
	}
	return errDeclaredGone
}

var (
	errDeclaredGone = fmt.Errorf("%w: the store has declared this process gone, as when it has not renewed its lease in time", task.ErrLost)
	errRemoved      = fmt.Errorf("%w: the store has it no more", task.ErrLost)
)
