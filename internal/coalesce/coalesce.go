// Package coalesce lets concurrent callers share one result of an expensive call, such as a scan of
// all goroutines or all processes.
package coalesce

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Call shares the results of one such call. The zero Call is ready to use and safe for concurrent
// use.
//
// It differs from a singleflight in what is shared. A caller that finds a call in progress does not
// join it, because that call may already have passed what the caller wants to see. The caller waits
// for it to end; then one of the waiting callers makes the next call, and the others share its
// result. Join is for callers that accept a call that has only just begun.
//
// Callers wait for a mutex and not on a channel: a Call is meant to be a global, and a global
// channel would tie testing/synctest bubbles together.
type Call[T any] struct {
	attempts atomic.Uint64 // number of attempts begun
	current  atomic.Pointer[attempt]
	waiting  atomic.Int64 // number of callers in Do and Join

	mu     sync.Mutex
	newest uint64 // attempt that produced last
	last   T      // zero when no caller waits, so that it can be collected
}

// An attempt is a call in progress.
type attempt struct {
	number uint64
	begun  time.Time
}

// Do returns a fresh result of f: one for which f was called after Do was, by this caller or by
// another one that waited at the same time. The result is shared and must not be changed.
//
// If f declines by returning false, Do returns that result and false. It is not shared: the next
// caller calls its own f. Calls of f do not overlap.
func (c *Call[T]) Do(f func() (T, bool)) (result T, fresh bool) {
	c.waiting.Add(1) // before attempts is read, so that every newer result is kept for this caller
	return c.after(c.attempts.Load(), f)
}

// Join is like Do, but also shares a call in progress that began at most slack before. It is for
// callers that are woken at the same time.
func (c *Call[T]) Join(slack time.Duration, f func() (T, bool)) (result T, fresh bool) {
	c.waiting.Add(1)
	now, before := time.Now(), c.attempts.Load()
	if a := c.current.Load(); a != nil && a.number == before && now.Sub(a.begun) <= slack {
		before--
	}
	return c.after(before, f)
}

// after returns the result of an attempt newer than before. The caller is counted in waiting.
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
