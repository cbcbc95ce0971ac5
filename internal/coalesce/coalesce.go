// Package coalesce lets concurrent callers share one result of an expensive call, such as a scan of
// all goroutines or all processes.
package coalesce

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Call shares the results of calls of one function. The zero Call is ready to use. A Call is safe for concurrent use.
//
// It differs from a singleflight in what is shared. A caller that finds a call in progress does not
// share its result, because that call may already have visited what the caller wants to see. The
// caller waits for its end. Then one of the waiting callers makes the next call, and the others share
// the result. Join is for callers that also accept a call that has only just begun.
//
// Callers wait for a mutex and not on a channel: a Call is meant to be a global, and a global
// channel would tie testing/synctest bubbles together.
type Call[T any] struct {
	attempts atomic.Uint64 // number of attempts begun
	current  atomic.Pointer[attempt]
	waiting  atomic.Int64 // number of callers in Do and Join

	mu     sync.Mutex
	newest uint64 // number of the attempt that returned last
	last   T      // zero when no caller waits, so that the result can be garbage collected
}

// An attempt is a call in progress.
type attempt struct {
	number uint64
	begun  time.Time
}

// Do returns a fresh result: one of a call that began after the call of Do, of f or of the function
// of another caller that waited at the same time. The result is shared and must not be changed.
//
// If f returns false, Do returns the result of f and false. That result is not shared: the next
// caller calls its own function. Calls of the functions do not overlap.
func (c *Call[T]) Do(f func() (T, bool)) (result T, fresh bool) {
	c.waiting.Add(1) // before attempts is read, so that every newer result is kept for this caller
	return c.after(c.attempts.Load(), f)
}

// Join is like Do, but also shares the result of a call in progress that began at most slack before.
// It is for callers that are woken at the same time.
func (c *Call[T]) Join(slack time.Duration, f func() (T, bool)) (result T, fresh bool) {
	c.waiting.Add(1)
	now, before := time.Now(), c.attempts.Load()
	if a := c.current.Load(); a != nil && a.number == before && now.Sub(a.begun) <= slack {
		before--
	}
	return c.after(before, f)
}

// after returns the result of an attempt with a number greater than before, or of f. It removes the
// caller, which Do or Join has added, from waiting.
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
	c.current.Store(now)
	defer c.current.Store(nil)
	result, fresh = f()
	if fresh {
		c.newest, c.last = now.number, result
	}
	return result, fresh
}
