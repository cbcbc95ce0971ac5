package task

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// storeGrace is how long a store may take to return when the context of its call has ended.
const storeGrace = time.Second

// A guarded is a store of the caller's whose methods run on separate goroutines. A panic or a Goexit in a method is
// the error of the call. A method that has not returned a moment after the end of its context is abandoned.
type guarded struct{ store Store }

// guard returns s, a store of the caller's, as a guarded store. A *memory needs no guard and is returned as it is.
func guard(s Store) Store {
	if _, ours := s.(*memory); ours {
		return s
	}
	return guarded{s}
}

// Create is waited for in any case: a record that came later would belong to nobody.
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
	// The method may have succeeded.
	grace := time.NewTimer(storeGrace)
	defer grace.Stop()
	select {
	case r := <-returned:
		return r.value, r.err
	case <-grace.C:
		var none R
		return none, context.Cause(ctx)
	}
}
