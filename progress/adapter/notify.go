package adapter

import (
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// Notify calls send, which sends a progress notification or a log message for the call, and returns the error of
// send. id is that of the task, and form that of the handle that the client has been given; before a handle they are ""
// and [task.Plain]. After an Extension handle or a continuation, and when the task is
// final, the client must not get another message about the call: then Notify does not call send, and returns nil. If
// the handle is due while send runs, the handle waits up to 100 ms for send to return. Notify itself waits for send,
// on whose goroutine it is called.
func (t *Task) Notify(send func(id string, form task.Form) error) error {
	if t == nil {
		return send("", task.Plain)
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
	return send(t.handed())
}
