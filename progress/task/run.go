package task

import (
	"context"
	"errors"
)

// Why the context of a run ends that has become a task; the cause of the abort.
var ErrCancelled = errors.New("the task was cancelled")

// A Run is a call that runs under [Do] and may be, or become, a task or a continuation. A nil *Run
// is a call that stays plain: its methods do what is right for that. All are safe for
// concurrent use.
type Run struct{}

// FromContext returns the run that ctx belongs to, or nil.
func FromContext(ctx context.Context) *Run { panic("not yet") }

// Context returns ctx as a context of the run, for an SDK that does not pass on the context that
// Do has called run with. [toolcall.Do] must be called with one or the other, for that is how
// the run learns of the heartbeat.
func (r *Run) Context(ctx context.Context) context.Context { panic("not yet") }

// Handed reports whether the client has been given a handle, and in which form; Plain and false
// before.
func (r *Run) Handed() (Form, bool) { panic("not yet") }

// ID is the id of the task, "" before there is one.
func (r *Run) ID() string { panic("not yet") }

// Notify calls send, which sends a progress notification or a log message for the call, unless the
// client must not get it any more: after an Extension handle or a continuation, and when the task
// is final. While send runs no handle is given, for up to 100 ms. It returns what send returns,
// or nil.
func (r *Run) Notify(send func() error) error { panic("not yet") }

// InputRequired makes the status of a task input_required until done is called, for a question
// that is sent to the client as a request of its own (Legacy). The idle check is not held by it:
// ask under [progress.Await].
func (r *Run) InputRequired(ctx context.Context) (done func()) { panic("not yet") }

// Seen waits until the client has asked for the task, or a second has passed since its handle, or
// ctx ends. A question that is sent as a request of its own may overtake the handle, and a client
// that does not know the task yet cannot match it.
func (r *Run) Seen(ctx context.Context) error { panic("not yet") }

// Fetching returns the context of a tasks/result of this process that waits for the task; it waits
// for one until ctx ends. Over HTTP a question may have no other stream to go out on.
func (r *Run) Fetching(ctx context.Context) (context.Context, error) { panic("not yet") }
