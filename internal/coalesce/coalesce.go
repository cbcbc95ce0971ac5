// Package coalesce lets callers that come at the same time share one result of a call
// that is dear: a look at all goroutines, or at all processes.
package coalesce

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Call is such a call. The zero Call is ready to use, by any number of goroutines.
//
// It differs from a singleflight in what is shared. Whoever finds a call under way does
// not join it, since it may have passed what they want to see, but waits for it to end;
// then one of all who wait makes the next call, and the others share that. Join is for who
// is content with one that has hardly begun.
//
// They wait for a mutex, and not on a channel: a Call is meant to be a global, and a
// channel there ties testing/synctest bubbles together.
type Call[T any] struct {
	attempts atomic.Uint64 // how many have begun
	under    atomic.Pointer[attempt]
	waiting  atomic.Int64 // how many callers are in Do and Join

	mu     sync.Mutex
	newest uint64 // the attempt that brought last
	last   T      // zero when nobody waits, so that it can be collected
}

// An attempt is one that is under way.
type attempt struct {
	number uint64
	begun  time.Time
}

// Do returns a result of f that is fresh: f was called after Do was, here or for another
// caller who waited at the same time. The result belongs to all of them, and must not be
// changed.
//
// f may decline, with false; then Do returns what f returned, and false. That is not
// shared: the next caller asks its own f. Calls of f do not overlap.
func (c *Call[T]) Do(f func() (T, bool)) (result T, fresh bool) {
	c.waiting.Add(1) // before attempts is read: what is newer than that is kept for us
	return c.after(c.attempts.Load(), f)
}

// Join is Do, and shares a call that is under way, too, if it has begun at most slack before: for
// callers that are woken at the same time, and none of which is the first.
func (c *Call[T]) Join(slack time.Duration, f func() (T, bool)) (result T, fresh bool) {
	c.waiting.Add(1)
	now, before := time.Now(), c.attempts.Load()
	if a := c.under.Load(); a != nil && a.number == before && now.Sub(a.begun) <= slack {
		before--
	}
	return c.after(before, f)
}

// after returns a result of an attempt after before. The caller is among those who wait.
func (c *Call[T]) after(before uint64, f func() (T, bool)) (result T, fresh bool) {
	c.mu.Lock()
	defer func() {
		if c.waiting.Add(-1) == 0 {
			var none T
			c.last = none
		}
		c.mu.Unlock()
	}()
	if c.newest > before {
		return c.last, true
	}
	now := &attempt{c.attempts.Add(1), time.Now()}
	c.under.Store(now)
	defer c.under.Store(nil)
	result, fresh = f()
	if fresh {
		c.newest, c.last = now.number, result
	}
	return result, fresh
}
