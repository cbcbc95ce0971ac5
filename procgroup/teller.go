package procgroup

import (
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
)

// A teller calls Input.Notify with the waits that an inputWatch finds, on a goroutine that exists while there are waits
// to pass on. A pending wait is dropped when a newer one comes. Only a pending zero InputWait, which reports that the
// command has gone on, stays before a newer wait.
type teller struct {
	fn   func(InputWait)
	fail func(error) // see capture.Guard

	mu      sync.Mutex
	pending []InputWait   // at most two: a zero InputWait, and a wait after it
	newest  InputWait     // the argument of the last call
	calling bool          // a call is about to begin or in progress
	over    bool          // no further call begins
	idle    chan struct{} // closed when the goroutine has ended; nil if no goroutine runs
}

// tell adds wait to the pending ones, and starts the goroutine if none runs. It does not wait for the call.
func (t *teller) tell(wait InputWait) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	if n := len(t.pending); n > 0 && (wait.Pid == 0 || t.pending[n-1].Pid != 0) {
		t.pending = t.pending[:n-1]
		if wait.Pid == 0 {
			t.pending = t.pending[:0]
		}
	}
	if wait.Pid != 0 || t.newest.Pid != 0 {
		t.pending = append(t.pending, wait)
	}
	if t.idle == nil && len(t.pending) > 0 {
		t.idle = make(chan struct{})
		go t.run(t.idle)
	}
}

func (t *teller) run(idle chan struct{}) {
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.calling = false
		if len(t.pending) > 0 && !t.over { // fn has called runtime.Goexit: go on with another goroutine
			go t.run(idle)
			return
		}
		t.idle = nil
		close(idle)
	}()
	for {
		t.mu.Lock()
		t.calling = false
		if len(t.pending) == 0 || t.over {
			t.mu.Unlock()
			return
		}
		wait := t.pending[0]
		t.pending, t.newest, t.calling = t.pending[1:], wait, true
		t.mu.Unlock()
		capture.Guard(func() { t.fn(wait) }, t.fail)
	}
}

// beginTime is the time that the goroutine of a call has to begin the call once calling is set.
const beginTime = 50 * time.Millisecond

// finish waits, until the given time, for a call for a pending wait to begin, if there is one. Once it finds calling
// set, or the time is over, it drops the pending waits, so that no further call begins, and waits at most beginTime for
// the call to return: a call that is about to begin must not begin after Process.Wait has returned. A nil teller has no
// calls.
func (t *teller) finish(until time.Time) {
	for t != nil {
		t.mu.Lock()
		idle := t.idle
		late := !time.Now().Before(until)
		calling := t.calling
		t.over = t.over || late || calling || idle == nil
		over := t.over
		t.mu.Unlock()
		if idle == nil {
			return
		}
		wait := time.Millisecond // until the next check; the goroutine may not have been scheduled yet
		if over {
			wait = beginTime
		}
		patient.Wait(idle, time.Now().Add(wait))
		if over {
			return
		}
	}
}
