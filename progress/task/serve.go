package task

import (
	"context"
	"encoding/json"
)

// A Request is one request of a tasks/* method.
type Request struct {
	Method string          // tasks/get, tasks/result, tasks/list, tasks/cancel or tasks/update
	Params json.RawMessage // as they came; may be nil
	Client Client
}

// Serve answers a request: with the fields of its result, whose values encoding/json writes, or
// with an [*Error]. tasks/result waits until the task is final or ctx ends; then the error is
// the cause of ctx. What the store cannot say is an error with [CodeInternal].
//
// tasks/list is there only where the caller has a principal or a session.
func (t *Tasks) Serve(ctx context.Context, r Request) (map[string]any, error) { panic("not yet") }
