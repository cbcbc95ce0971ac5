// Package patient bounds the time of calls about files whose file system may never answer, such as a network file
// system whose server is down. Such a call cannot be interrupted. So each call runs on a goroutine of its own, which is
// abandoned if the call does not return in time. While an abandoned call about a file has not returned, Within and
// Until begin no other call about that file.
package patient

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Patience is the time after which a call of Until counts as unanswered, and the usual patience for Within. A call that
// returns takes microseconds, or milliseconds if it needs a server.
const Patience = 250 * time.Millisecond

// ErrNoAnswer is the error for a call that did not return in time.
var ErrNoAnswer = errors.New("the file system does not answer")

// Within calls f on a new goroutine, and reports whether f has returned within patience. If it has not, f goes on, and
// the caller must not read what f writes. If an earlier call about the same file is unanswered, Within returns false
// and does not call f. file must be comparable.
func Within(patience time.Duration, file any, f func()) bool {
	if stuck.count(file) > 0 {
		return false
	}
	returned := begin(file, f)
	if returned.soon() {
		return true
	}
	// The wait has several steps: if this process gets no processor for a while, only one step is lost.
	const steps = 10
	for range steps {
		if Wait(returned.done, time.Now().Add(patience/steps)) {
			return true
		}
	}
	return returned.late()
}

// Until is like Within, but waits until ctx is done, and then returns ctx.Err(). It also waits for earlier unanswered
// calls about the same file, before it calls f. After Patience, its own call counts as unanswered.
func Until(ctx context.Context, file any, f func()) error {
	// This polls, because calls in different testing/synctest bubbles must not share a channel.
	for stuck.count(file) > 0 {
		select {
		case <-time.After(Patience / 5):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	returned := begin(file, f)
	if returned.soon() {
		return nil
	}
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select { // a return wins: late reports it
	case <-returned.done:
		return nil
	case <-ctx.Done():
	case <-timer.C:
		returned.late()
		select { // here, too
		case <-returned.done:
			return nil
		case <-ctx.Done():
		}
	}
	if returned.late() {
		return nil
	}
	return ctx.Err()
}

// Soon is like Within for an f with results, and returns them, or ErrNoAnswer. If f returns a value later, without an
// error, that value is passed to undo, unless undo is nil.
func Soon[T any](patience time.Duration, file any, f func() (T, error), undo func(T)) (T, error) {
	return get(func(f func()) error {
		if !Within(patience, file, f) {
			return ErrNoAnswer
		}
		return nil
	}, f, undo)
}

// Do is like Soon for an f that returns only an error.
func Do(patience time.Duration, file any, f func() error) error {
	_, err := Soon(patience, file, func() (struct{}, error) { return struct{}{}, f() }, nil)
	return err
}

// Get is like Soon, but waits as Until does, and returns ctx.Err() in place of ErrNoAnswer.
func Get[T any](ctx context.Context, file any, f func() (T, error), undo func(T)) (T, error) {
	return get(func(f func()) error { return Until(ctx, file, f) }, f, undo)
}

// get calls f in wait, which returns an error if it has not waited for the end of f.
func get[T any](wait func(f func()) error, f func() (T, error), undo func(T)) (value T, err error) {
	type result struct {
		value T
		err   error
	}
	results := make(chan result, 1)
	var over atomic.Bool
	undoLate := func() {
		select {
		case late := <-results:
			if late.err == nil && undo != nil {
				undo(late.value)
			}
		default:
		}
	}
	err = wait(func() {
		value, err := f()
		results <- result{value, err}
		if over.Load() {
			undoLate()
		}
	})
	if err != nil {
		over.Store(true)
		go undoLate() // in case f has returned in the meantime
		return value, err
	}
	r := <-results
	return r.value, r.err
}

// Unanswered returns the number of unanswered calls about file. Each occupies a goroutine and a thread.
func Unanswered(file any) int { return stuck.count(file) }

// A call is a call of an f in progress.
type call struct {
	file any
	done chan struct{} // closed when f has returned

	// isStuck is set if the call is counted in stuck, and over if f has returned. stuck.mu guards both.
	isStuck, over bool
}

func begin(file any, f func()) *call {
	c := &call{file: file, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		defer stuck.remove(c)
		f()
	}()
	return c
}

// soon lets other goroutines run once, and then reports whether f has returned. Most calls have, and need no timer.
func (c *call) soon() bool {
	runtime.Gosched()
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// late counts the call as unanswered, unless f has returned. It reports whether f has returned.
func (c *call) late() (answered bool) { return !stuck.add(c) }

// stuck has the number of unanswered calls about each file.
var stuck = calls{all: make(map[any]int)}

type calls struct {
	mu  sync.Mutex
	all map[any]int
}

func (s *calls) count(file any) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[file]
}

// add counts c as unanswered, once, and returns true. If c is over, it returns false.
func (s *calls) add(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.over && !c.isStuck {
		c.isStuck = true
		s.all[c.file]++
	}
	return !c.over
}

func (s *calls) remove(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.over = true
	if !c.isStuck {
		return
	}
	if s.all[c.file]--; s.all[c.file] == 0 {
		delete(s.all, c.file)
	}
}
