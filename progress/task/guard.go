package task

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// storeGrace is how long call waits for a store to return after the context of its call has ended.
const storeGrace = time.Second

// A guarded runs each method of a caller's store on a goroutine of its own. A panic or a Goexit in a method becomes the
// error of the call. A method that has not returned storeGrace after the end of its context is abandoned.
type guarded struct{ store Store }

// guard returns s as a guarded store. A store of [NewMemory] needs no guard and is returned unchanged.
func guard(s Store) Store {
	if _, ours := s.(*memory); ours {
		return s
	}
	return guarded{s}
}

// Create waits for the store even after the end of ctx: a record stored after an abandoned call would belong to no run.
func (g guarded) Create(ctx context.Context, r Record) (Record, error) {
	return call(context.WithoutCancel(ctx), func() (Record, error) { return g.store.Create(ctx, r) })
}

func (g guarded) Get(ctx context.Context, owner, id string) (Record, error) {
	return call(ctx, func() (Record, error) { return g.store.Get(ctx, owner, id) })
}

func (g guarded) Update(ctx context.Context, r Record) (Record, error) {
	return call(ctx, func() (Record, error) { return g.store.Update(ctx, r) })
}

func (g guarded) List(ctx context.Context, owner, cursor string, limit int) ([]Record, string, error) {
	type page struct {
		records []Record
		next    string
	}
	p, err := call(ctx, func() (p page, err error) {
		p.records, p.next, err = g.store.List(ctx, owner, cursor, limit)
		return p, err
	})
	return p.records, p.next, err
}

func (g guarded) Wait(ctx context.Context, owner, id string, after uint64) (Record, error) {
	return call(ctx, func() (Record, error) { return g.store.Wait(ctx, owner, id, after) })
}

func call[R any](ctx context.Context, f func() (R, error)) (R, error) {
	type result struct {
		value R
		err   error
	}
	returned := make(chan result, 1)
	go func() {
		r := result{err: timeout.ErrGoexit}
		defer func() {
			if v := recover(); v != nil {
				r = result{err: &timeout.PanicError{Value: v, Stack: debug.Stack()}}
			}
			returned <- r
		}()
		value, err := f()
		r = result{value, err}
	}()
	select {
	case r := <-returned:
		return r.value, r.err
	case <-ctx.Done():
	}
	// The method may have succeeded all the same, so wait for its result for a moment.
	select {
	case r := <-returned:
		return r.value, r.err
	case <-time.After(storeGrace):
		var none R
		return none, context.Cause(ctx)
	}
}
