package procfs

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// A question is a read of what the kernel shows about a process. It may block, even for ever. The environment and the
// arguments of a process are in its memory, which cannot be read while the process changes its memory map; its stack
// and its I/O counters cannot be read during an exec. The process needs only microseconds of processor time to get
// past that, but a process of low priority may wait seconds for them on a busy machine (measured: 5 s for the
// environment, 10 s for the arguments). A process that waits for a file system whose server is down does not get past
// it, and a question that follows its descriptors, or opens its executable, waits for that server itself.
//
// A question cannot be interrupted. So it runs on a goroutine that is abandoned if it is late; see [Gather]. Only one
// question of the same kind about the same process is in progress at a time, so that a question that never returns
// occupies one goroutine and one thread.

// ErrLate is the error of a question that was not begun in time, because the same question or too many others were in
// progress.
var ErrLate = errors.New("the question has not been asked in time")

// Stall, if a test has set it, is called before each read that may block, on the goroutine of the read. Its arguments
// are the name of the method of Reader, or of the function, that reads, and the process id, or 0 if the read is about
// this process or the whole system. Calls may overlap.
var Stall atomic.Pointer[func(question string, pid int)]

const (
	// maxAsked bounds the questions in progress, each of which may occupy a thread. A question that has not returned
	// after stuckAfter is stuck: it no longer counts, so that others can begin. All questions together, the stuck ones
	// included, are at most maxAsked+maxStuck.
	maxAsked, maxStuck = 64, 1024
	stuckAfter         = time.Second
)

// A question identifies all reads of one kind about one process.
type question struct {
	name string
	pid  int // 0: about the whole system
}

// An inquiry is a question in progress.
type inquiry struct {
	at       time.Time     // its start
	answered chan struct{} // closed when the question returns
}

// questions has the questions in progress.
var questions = struct {
	sync.Mutex
	all map[question]*inquiry
}{all: make(map[question]*inquiry)}

// ask calls read, which may block. name and pid identify the question. While the same question is in progress, or too
// many are, ask first waits; it gives up, sets r.Late and returns ErrLate once the Gather of r is over, or that
// question is stuck. Questions about the whole system do not wait for each other.
func (r *Reader) ask(name string, pid int, read func()) error {
	q := question{name, pid}
	var mine *inquiry
	for {
		now := time.Now()
		questions.Lock()
		other := questions.all[q]
		if other == nil && mayAsk(now) {
			mine = &inquiry{at: now, answered: make(chan struct{})}
			questions.all[q] = mine
			questions.Unlock()
			break
		}
		questions.Unlock()
		wait := glance
		var answered <-chan struct{}
		if other != nil {
			wait, answered = stuckAfter-now.Sub(other.at), other.answered
			if wait <= 0 {
				r.Late = true
				return ErrLate
			}
			if pid == 0 { // a question about the whole system
				break
			}
		}
		timer := time.NewTimer(wait)
		select { // once over is closed, nobody takes an answer
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
		if mine != nil {
			questions.Lock()
			delete(questions.all, q)
			questions.Unlock()
			close(mine.answered)
		}
	}()
	stall(name, pid)
	read()
	return nil
}

func stall(question string, pid int) {
	if stall := Stall.Load(); stall != nil {
		(*stall)(question, pid)
	}
}

// mayAsk reports whether one more question may begin: fewer than maxAsked are in progress, not counting those that are
// stuck, and fewer than maxAsked+maxStuck with them. The caller has locked questions.
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
