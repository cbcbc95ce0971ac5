package task

import "time"

// How long a handle waits for a notification that is being sent.
const sendWait = 100 * time.Millisecond

func (r *Run) notifyChanged(notes <-chan Record) {
	for record := range notes {
		func() {
			defer func() { _ = recover() }() // what it panics with is no sign of the task
			r.call.Changed(record.notification(r.form))
		}()
	}
}

// Notify calls send, which sends a progress notification or a log message for the call, unless the
// client must not get it any more: after an Extension handle or a continuation, and when the task
// is final. While send runs no handle is given, for up to 100 ms. It returns what send returns,
// or nil.
func (r *Run) Notify(send func() error) error {
	if r == nil {
		return send()
	}
	r.mu.Lock()
	if r.muted || r.final {
		r.mu.Unlock()
		return nil
	}
	r.sending++
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.sending--; r.sending == 0 && r.sent != nil {
			close(r.sent)
			r.sent = nil
		}
	}()
	return send()
}

// mute lets nothing more be sent, and waits for what is being sent.
func (r *Run) mute() {
	if r.form == Legacy {
		return // progress goes on
	}
	r.mu.Lock()
	r.muted = true
	if r.sending == 0 {
		r.mu.Unlock()
		return
	}
	sent := make(chan struct{})
	r.sent = sent
	r.mu.Unlock()
	wait := time.NewTimer(sendWait)
	defer wait.Stop()
	select {
	case <-sent:
	case <-wait.C:
	}
}
