package natstasks

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/progress/task"
)

func unknown(err error) bool { return errors.Is(err, task.ErrUnknown) }

// retry is the time after which a Wait reads the record again after an error, and a watch begins again.
const retry = 250 * time.Millisecond

// A bell signals a Wait that its record may have changed.
type bell struct{ c chan struct{} }

func (b *bell) ring() {
	select {
	case b.c <- struct{}{}:
	default: // the channel has a value already
	}
}

// Wait returns the record as soon as its revision differs from after; see [task.Store]. It goes on
// waiting while the server cannot be reached.
//
// A watch only signals that the record has to be read again. Wait also reads it three times per lease, to find a change
// that the watch has missed because a server or a connection was lost.
func (s *store) Wait(ctx context.Context, owner, id string, after uint64) (task.Record, error) {
	k, ok := keyOf(owner, id)
	if !ok {
		return task.Record{}, task.ErrUnknown
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(errClosed) })()
	b := &bell{make(chan struct{}, 1)}
	var watched atomic.Bool
	if k.replica == s.replica {
		defer s.listen(k.name, b)()
		watched.Store(true)
	} else {
		s.start(func() {
			s.watch(ctx, k.name, func() { watched.Store(true); b.ring() }, func(string) { b.ring() })
		})
	}
	look := time.NewTimer(0)
	defer look.Stop()
	for {
		r, err := s.get(ctx, k, s.isGone)
		wait := s.opts.Lease / 3
		switch {
		case ctx.Err() != nil:
			return task.Record{}, context.Cause(ctx)
		case unknown(err):
			return task.Record{}, err
		case err != nil:
			wait = retry
		case r.Revision != after:
			whole, err := s.withAnswer(ctx, r)
			if err == nil || unknown(err) {
				return whole, err
			}
			wait = retry
		case r.Status.Final():
			wait = min(wait, max(time.Until(r.Expires), 0)+time.Millisecond)
		}
		if !watched.Load() {
			wait = min(wait, retry)
		}
		look.Reset(wait)
		select { // the end of ctx wins: see above
		case <-b.c:
		case <-look.C:
		case <-ctx.Done():
			return task.Record{}, context.Cause(ctx)
		}
	}
}

// start runs f on a goroutine for which Close waits. If the store is closed, it does nothing.
func (s *store) start(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() == nil {
		s.done.Go(f)
	}
}

var errClosed = errors.New("natstasks: the store is closed")

// listen rings b for changes of a task of this replica, until leave is called. All such Waits share one watch, because
// every running task has a Wait.
func (s *store) listen(name string, b *bell) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bells[name] == nil {
		s.bells[name] = make(map[*bell]bool)
	}
	s.bells[name][b] = true
	if !s.watching && s.ctx.Err() == nil {
		s.watching = true
		s.done.Go(s.watchOwn)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.bells[name], b)
		if len(s.bells[name]) == 0 {
			delete(s.bells, name)
		}
	}
}

// watchOwn rings the bells of tasks of this replica when these tasks change, until the store is closed.
func (s *store) watchOwn() {
	s.watch(s.ctx, "*."+s.replica+".*", func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, of := range s.bells {
			for b := range of {
				b.ring()
			}
		}
	}, func(name string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for b := range s.bells[name] {
			b.ring()
		}
	})
}

// watch calls changed with each key that changes, until ctx ends. It calls begun when the watch has begun, and each
// time that it has begun again after an error. It does not report changes before that.
func (s *store) watch(ctx context.Context, keys string, begun func(), changed func(key string)) {
	for ctx.Err() == nil {
		// The watch lives as long as this context, so the context must not have a deadline.
		one, cancel := context.WithCancel(ctx)
		late := time.AfterFunc(callWait, cancel)
		w, err := s.kv.Watch(one, keys, jetstream.UpdatesOnly(), jetstream.MetaOnly())
		if late.Stop() && err == nil {
			begun()
			follow(one, w, changed)
		}
		cancel()
		select {
		case <-time.After(retry):
		case <-ctx.Done():
		}
	}
}

// follow calls changed with each key that a watch reports, until the watch or the connection ends.
//
// nats.go stops a watch and closes its updates when the context ends, but not if the context ended before Watch
// registered for that. follow then stops the watch itself. It reads the updates until the end, because otherwise their
// sender would block for ever.
func follow(ctx context.Context, w jetstream.KeyWatcher, changed func(key string)) {
	ended := ctx.Done()
	var again <-chan time.Time
	for {
		select {
		case e, ok := <-w.Updates():
			if !ok {
				return
			}
			if e != nil {
				changed(e.Key())
			}
			continue
		case <-ended:
			ended = nil
		case <-again:
			if err := w.Stop(); errors.Is(err, nats.ErrBadSubscription) || errors.Is(err, nats.ErrConnectionClosed) {
				return // the watch has ended and sends no more updates
			}
		}
		again = time.After(20 * time.Millisecond)
	}
}
