package task

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
)

// A Call is one tools/call.
type Call struct {
	Tool   string
	Client Client
	// Asked is whether the params have "task". From 2026-07-28 on it is ignored, as the protocol
	// wants it.
	Asked bool
	// Soft and TaskOnly are what timeout.Policy.Soft returns for the tool: after how long
	// the call may become a task, 0 for never and less for at once; and that it may be called as a
	// task or a continuation only.
	Soft     time.Duration
	TaskOnly bool
	// Continuation says how a call goes on whose client can take no task, nil for not at all.
	Continuation *Continuation

	// Changed, if it is not nil, is called with the notification for each change of a task after
	// its handle: notifications/tasks/status for Legacy, notifications/tasks for Extension.
	// Calls come one after the other, and may be skipped. Both protocols leave it to the server
	// whether they are sent at all.
	Changed func(method string, params map[string]any)
	// Await is for how long the tool's questions wait for an answer, as for [progress.Await].
	Await []progress.AwaitOption
}

// Do runs one call, and returns what run has returned or, where the call becomes a task or a
// continuation, the record, whose [Record.Handle] is the answer. It never returns both: err
// is nil then, and the value is zero. A nil t, and a call that can become neither, is run(ctx, nil).
//
// run is the whole supervised call: toolcall.Do, and what makes a result of a call that was
// stopped. It is called once, and encode is what turns what it returns into JSON, when the
// call has become a task and not before. Where that has Questions, they are put to the client, and
// run is called again, with the answers by the keys of the tool. If nobody answers in time, encode
// is called with the error of [progress.Await].
//
// When the handle is due:
//
//   - a client that asks for a task (Legacy) gets it at once, whatever the soft limit;
//   - one that declares tasks (Extension), when the soft limit is reached;
//   - any other, where there is a Continuation, when [Continuation.Soft] is reached.
//
// A result that falls due together with the handle wins, and so does one whose tool has returned.
// A call stays plain where [WithMaxRunning] is reached or the store has no room for it.
//
// Until the handle, run's context ends with ctx. From then on it does not, and ends by
// tasks/cancel, with [ErrCancelled] as the cause, by [Tasks.Shutdown], and by
// [Tasks.EndSession]; so hold nothing that ends with the request. [FromContext] returns the run.
// A ctx with a deadline before the soft limit stays as it is, and the call plain.
//
// The error is an [*Error] where the call does not go with what the client can take: a tool that
// is never a task and was called as one, or one that can only be called as one and was not.
// A panic of run is a panic of Do, and after the handle the task fails with it.
func Do[R any](ctx context.Context, t *Tasks, c Call,
	run func(ctx context.Context, answers map[string]json.RawMessage) (R, error),
	encode func(R, error) Answer,
) (R, *Record, error) {
	panic("not yet")
}
