package procfs

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// A question to the system about a process may have to wait, and never be answered. The environment and the arguments of
// a process are in its memory, which cannot be read while the process changes its memory map; its stack and its I/O
// counters are not available during an exec. The process needs only microseconds of processor time to get past that, but
// a process of low priority may wait seconds for them on a busy machine (measured: 5 s for the environment, 10 s for the
// arguments). A process that waits for a file system whose server is away does not get past it, and a question
// that follows its descriptors, or opens its executable, waits for that server itself.
//
// Such a question cannot be interrupted. So each is put on a goroutine that is abandoned when it is late; see [Gather].
// At most one question of the same kind about the same process is in progress at a time, so that a question that is
// never answered occupies one goroutine and one thread, and is not asked again.

// ErrLate is the error of a question that was not asked, because the same question or too many others are still
// unanswered.
var ErrLate = errors.New("the question has not been asked in time")

// Stall is called before each question, with the name of the method of Reader, or of the function, and the process id,
// or 0 if it is about no process. It is for tests.
var Stall atomic.Pointer[func(question string, pid int)]

const (
	// maxAsked bounds the questions in progress, of which each may occupy a thread. A question without an answer
	// after stuckAfter counts as stuck instead, so that it does not keep others from being asked. maxStuck bounds the
	// stuck questions.
	maxAsked, maxStuck = 64, 1024
	stuckAfter         = time.Second
)

type question struct {
	name string
	pid  int
}

type inquiry struct {
	at       time.Time
	answered chan struct{} // closed with the answer; nil as long as nobody waits for it
}

// questions holds the questions in progress.
var questions = struct {
	sync.Mutex
	all map[question]*inquiry
}{all: make(map[question]*inquiry)}

// ask calls read, in which the system is asked. It waits while the same question is in progress, or too many are, and
// returns ErrLate if that takes too long: until the Gather of r is over, or until that question is stuck.
func (r *Reader) ask(name string, pid int, read func()) error {
	q, mine := question{name, pid}, &inquiry{}
	for {
		now := time.Now()
		questions.Lock()
		other := questions.all[q]
		if other == nil && mayAsk(now) {
			mine.at = now
			questions.all[q] = mine
			questions.Unlock()
			break
		}
		if other != nil && pid == 0 && now.Sub(other.at) < stuckAfter { // a question about the whole system, which many ask at a time
			mine = nil
			questions.Unlock()
			break
		}
		var answered chan struct{}
		wait := glance
		if other != nil {
			if wait = stuckAfter - now.Sub(other.at); wait <= 0 {
				questions.Unlock()
				r.Late = true
				return ErrLate
			}
			if other.answered == nil {
				other.answered = make(chan struct{})
			}
			answered = other.answered
		}
		questions.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-answered:
		case <-timer.C:
		case <-r.over:
			timer.Stop()
			r.Late = true
			return ErrLate
		}
		timer.Stop()
	}
	defer func() {
		if mine == nil {
			return
		}
		questions.Lock()
		delete(questions.all, q)
		answered := mine.answered
		questions.Unlock()
		if answered != nil {
			close(answered)
		}
	}()
	if stall := Stall.Load(); stall != nil {
		(*stall)(name, pid)
	}
	read()
	return nil
}

// stall calls Stall for a question about a file of this process.
func stall(name string) {
	if stall := Stall.Load(); stall != nil {
		(*stall)(name, 0)
	}
}

// mayAsk reports whether one more question may be in progress. The questions are locked.
func mayAsk(now time.Time) bool {
	n := len(questions.all)
	if n < maxAsked {
		return true
	}
	if n >= maxAsked+maxStuck {
		return false
	}
	for _, a := range questions.all {
		if now.Sub(a.at) > stuckAfter {
			n--
		}
	}
	return n < maxAsked
}
