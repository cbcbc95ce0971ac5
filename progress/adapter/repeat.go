package adapter

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// errRunning is the error of a repeated call whose client waits no longer, while the first call goes on.
var errRunning = errors.New("a call with the same idempotency key is still running: repeat it later")

// Repeat returns the result of call or, if the options have Idempotency and a call with the same
// [request.IdempotencyKey] in meta and the same content came before, the result of that call. If the earlier call is
// still running, Repeat waits for it. If ctx ends first, the error is the cause of ctx; if the client has to have an
// answer first, as the [policy.Budget] in meta says, the error says that the earlier call is still running. The result
// is kept unless ctx has ended, call has failed or panicked, or the result is nil, asks a person, is no JSON, has more
// than 16 MiB, or has the [toolcall.Outcome] of a call that was aborted, or that may have been stopped because its
// client would have given up. If the result is not kept, the next call with the key runs. Repeat waits for call, which
// has to end with ctx, for content to become JSON, and for the result to become JSON.
//
// The content, which is compared as JSON, identifies the request: the same key of another client, or with other
// content, counts as another key. The client is the principal or else the session of from, which is called only if
// there is a key; all clients with neither count as one. Repeat is safe for concurrent use.
func Repeat[R any](ctx context.Context, s *Server, meta map[string]any, from func() Caller, content any, call func() (R, error)) (R, error) {
	key, _ := meta[request.IdempotencyKey].(string)
	if s.answers == nil || key == "" {
		return call()
	}
	caller, wait := from(), ctx
	client := caller.owner(task.Plain)
	data, err := json.Marshal([]any{client, key, content})
	if err != nil {
		return call()
	}
	sum := sha256.Sum256(data)
	budget, _ := policy.ReadBudget(meta)
	if within, _ := budget.Answer(false); within.Left > 0 {
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeoutCause(ctx, within.Left, errRunning)
		defer cancel()
	}
	for {
		begun, entry := s.answers.begin(client, sum)
		if begun {
			keep := -1
			defer func() { s.answers.end(entry, keep) }() // after a panic too
			value, err := call()
			if err == nil && ctx.Err() == nil {
				entry.value = value
				keep = sizeToKeep(value, budget)
			}
			return value, err
		}
		select { // a kept result wins over the end of ctx, which wins over another call
		case <-entry.done:
		case <-wait.Done():
		}
		select {
		case <-entry.done:
			if entry.kept {
				return entry.value.(R), nil // all calls of a server have results of one type
			}
		default:
		}
		if wait.Err() != nil {
			var none R
			return none, context.Cause(wait)
		}
	}
}

// sizeToKeep returns how many bytes a result takes, or a negative number if it must not be kept. The timeout of a
// client's budget is not kept, because the client may wait for longer when it asks again.
func sizeToKeep(result any, waits policy.Budget) int {
	data, err := json.Marshal(result)
	if err != nil || string(data) == "null" {
		return -1
	}
	var r struct {
		Type      string          `json:"resultType"`
		Questions json.RawMessage `json:"inputRequests"` // in the form of the SDKs for earlier protocols, without a type
		Meta      struct {
			Outcome struct {
				ExitCode int `json:"exitCode"`
			} `json:"io.github.tooldeadline/outcome"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(data, &r)
	code := r.Meta.Outcome.ExitCode
	if r.Type == "input_required" || r.Questions != nil || code == timeout.ExitAborted || code == timeout.ExitTimeout && waits != (policy.Budget{}) {
		return -1
	}
	return len(data)
}
