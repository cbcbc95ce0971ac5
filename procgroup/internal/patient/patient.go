// Package patient makes calls about files of the caller's whose file system may not answer, as that of a server that
// is away never does. Such a call cannot be interrupted. So each is made on a goroutine of its own, which is left
// behind if there is no answer, and until then no other call about the same file is begun.
package patient

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"
)

// Patience is how long a call may take before it counts as unanswered. A call that is answered takes microseconds, or
// milliseconds if a server has to be asked.
const Patience = 250 * time.Millisecond

// ErrNoAnswer is the error of a call that was not answered in time.
var ErrNoAnswer = errors.New("the file system does not answer")

// Within calls f, and reports whether it has returned within patience. If it has not, what f writes must not be
// read. It does not call f if a call about the same file has not been answered. file is comparable.
func Within(patience time.Duration, file any, f func()) bool {
	if stuck.count(file) > 0 {
		return false
	}
	returned := begin(file, f)
	if returned.soon() {
		return true
	}
	if patience <= 0 {
		return returned.late()
	}
	// In glances, since one look at the clock after a long time may mean that this process had no processor.
	glance := time.NewTicker(max(patience/glances, 1))
	defer glance.Stop()
	for range glances {
		select {
		case <-returned.done:
			return true
		case <-glance.C:
		}
	}
	return returned.late()
}

// glances is how often Within looks whether a call is answered.
const glances = 10

// Until is like Within, but waits until ctx is done, and then returns the error of ctx.
func Until(ctx context.Context, file any, f func()) error {
	// No channel is shared between calls, which may be made in different bubbles of testing/synctest.
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
	over := timer.C
	for {
		select {
		case <-returned.done:
			return nil
		case <-over:
			over = nil
			if returned.late() {
				return nil
			}
		case <-ctx.Done():
			if returned.late() {
				return nil
			}
			return ctx.Err()
		}
	}
}

// Unanswered returns the number of calls about file that count as unanswered. Each keeps a goroutine and a thread.
func Unanswered(file any) int { return stuck.count(file) }

// A call is a call of Within or Until in progress.
type call struct {
	file any
	done chan struct{}

	// Guarded by stuck.
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

// soon reports whether the call is answered once its goroutine has had a turn, as most are: they need no timer.
func (c *call) soon() bool {
	runtime.Gosched()
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// late counts the call as unanswered, or reports true if it has been answered just now.
func (c *call) late() (answered bool) { return !stuck.add(c) }

// stuck has the number of calls about each file that are not answered.
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

// add counts c as unanswered. It reports false if the call is over.
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
