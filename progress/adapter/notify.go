package adapter

import (
	"time"

	"github.com/tooldeadline/tooldeadline/progress/task"
)

// sendWait is how long a handle waits for notifications that are being sent.
const sendWait = 100 * time.Millisecond

func (t *Task) notifyChanged(notes <-chan task.Record) {
	for record := range notes {
		returned := make(chan struct{})
		go func() { // of its own, which it may end
			defer close(returned)
			defer func() { _ = recover() }() // what it panics with is no sign of the task
			t.call.Changed(notification(&record, t.form))
		}()
		<-returned
	}
}

// Notify calls send, which sends a progress notification or a log message for the call, and returns
// its error. After an Extension handle or a continuation, and when the task is final, the client must
// not get any more: then Notify does nothing and returns nil. If the handle is due while send runs,
// the handle waits up to 100 ms for send to return. Notify itself waits for send, on whose goroutine it
// is called.
func (t *Task) Notify(send func() error) error {
	if t == nil {
		return send()
	}
	muted := false
	t.change(func(s *state) {
		if muted = s.phase == final || s.phase >= handing && t.form != task.Legacy; !muted {
			s.sending++
		}
	})
	if muted {
		return nil
	}
	defer t.change(func(s *state) { s.sending-- })
	return send()
}
