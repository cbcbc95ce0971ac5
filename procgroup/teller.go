package procgroup

import (
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
)

// A teller calls the caller's Notify, on a goroutine that exists as long as there is something to tell. A finding
// that is still pending when a newer finding comes is dropped, unless it says that the command has gone on between
// two waits.
type teller struct {
	fn   func(InputWait)
	fail func(error) // see capture.Guard

	mu      sync.Mutex
	pending []InputWait   // at most two: that it has gone on, and a wait after that
	newest  InputWait     // the last one for which a call was decided on
	calling bool          // a call was decided on, and has not returned
	over    bool          // no call begins
	idle    chan struct{} // closed when the goroutine has ended; nil if there was none
}

// tell has the function called with wait. It does not wait for it.
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
		if len(t.pending) > 0 && !t.over { // the callback has ended this goroutine
			go t.run(idle)
			return
		}
		t.idle = nil
		close(idle)
	}()
	for {
		t.mu.Lock()
		if len(t.pending) == 0 || t.over {
			t.mu.Unlock()
			return
		}
		wait := t.pending[0]
		t.pending, t.newest, t.calling = t.pending[1:], wait, true
		t.mu.Unlock()
		capture.Guard(func() { t.fn(wait) }, t.fail)
		t.mu.Lock()
		t.calling = false
		t.mu.Unlock()
	}
}

// beginTime is how long a call that has been decided on may take to begin.
const beginTime = 50 * time.Millisecond

// finish lets pending findings be told until the given time, but waits only for a moment for a call in progress:
// the call may not have begun, and must not begin after Wait has returned. No call begins after finish.
func (t *teller) finish(until time.Time) {
	for {
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
		wait := time.Millisecond // until the goroutine gets its turn
		if over {
			wait = beginTime
		}
		moment := time.NewTimer(wait)
		select {
		case <-idle:
		case <-moment.C:
		}
		moment.Stop()
		if over {
			return
		}
	}
}
