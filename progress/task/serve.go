package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Request is one request of a tasks/* method.
type Request struct {
	Method string          // tasks/get, tasks/result, tasks/list, tasks/cancel or tasks/update
	Params json.RawMessage // as they came; may be nil
	Client Client
}

type requestParams struct {
	TaskID         *string                    `json:"taskId"`
	Cursor         string                     `json:"cursor"`
	InputResponses map[string]json.RawMessage `json:"inputResponses"`
}

// listPage is how many tasks a page of tasks/list has.
const listPage = 50

// Serve answers a request: with the fields of its result, whose values encoding/json writes, or
// with an [*Error]. tasks/result waits until the task is final or ctx ends; then the error is
// the cause of ctx. What the store cannot say is an error with [CodeInternal].
//
// It refuses what the client's protocol does not have, and, from 2026-07-28 on, a client that has
// not declared [ExtensionID]. tasks/list is there only where the caller has a principal or a
// session.
func (t *Tasks) Serve(ctx context.Context, r Request) (map[string]any, error) {
	c := &r.Client
	if !slices.Contains(Methods(c.Version), r.Method) || r.Method == "tasks/list" && c.Principal == "" && c.Session == "" {
		return nil, &Error{Code: CodeMethodNotFound, Message: fmt.Sprintf("method not found: %q", r.Method)}
	}
	form := Legacy
	if c.modern() {
		if form = Extension; !c.Declared {
			return nil, missingCapability()
		}
	}
	var p requestParams
	if len(r.Params) > 0 {
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, &Error{Code: CodeInvalidParams, Message: r.Method + ": params: " + err.Error()}
		}
	}
	owner := c.owner(form)
	if r.Method == "tasks/list" {
		return t.list(ctx, owner, p.Cursor)
	}
	if p.TaskID == nil {
		return nil, &Error{Code: CodeInvalidParams, Message: r.Method + ": taskId is missing"}
	}
	id := *p.TaskID
	here := t.here(owner, id)
	if here != nil {
		here.see()
	}

	var record Record
	var err error
	var ended bool
	switch r.Method {
	case "tasks/get":
		record, err = t.store.Get(ctx, owner, id)
	case "tasks/result":
		if here != nil {
			defer here.fetch(ctx)()
		}
		record, err = t.await(ctx, owner, id, nil)
	case "tasks/cancel":
		record, err = t.change(ctx, owner, id, func(record *Record) bool {
			if ended = record.Status.Final(); !ended {
				record.end(Cancelled, time.Now())
				record.Message, record.Answer = ErrCancelled.Error(), nil
			}
			return !ended
		})
	case "tasks/update":
		record, err = t.change(ctx, owner, id, func(record *Record) bool { return record.respond(p.InputResponses) })
	}
	if err != nil {
		return nil, requestError(ctx, r.Method, id, err)
	}
	switch r.Method {
	case "tasks/get":
		return record.task(form), nil
	case "tasks/result":
		return record.result()
	case "tasks/cancel":
		if form == Legacy && ended {
			return nil, &Error{Code: CodeInvalidParams, Message: fmt.Sprintf("tasks/cancel: the task is %s already", record.legacyStatus())}
		}
		if form == Legacy {
			return record.task(form), nil
		}
	}
	return map[string]any{"resultType": "complete"}, nil
}

// await waits until the task is final, and calls changed, if it is not nil, with each record on
// the way.
func (t *Tasks) await(ctx context.Context, owner, id string, changed func(*Record)) (Record, error) {
	record, err := t.store.Get(ctx, owner, id)
	for err == nil && !record.Status.Final() {
		if changed != nil {
			changed(&record)
		}
		record, err = t.store.Wait(ctx, owner, id, record.Revision)
	}
	return record, err
}

func (t *Tasks) list(ctx context.Context, owner, cursor string) (map[string]any, error) {
	page, next, err := t.store.List(ctx, owner, cursor, listPage)
	if err != nil {
		return nil, requestError(ctx, "tasks/list", cursor, err)
	}
	tasks := make([]any, len(page))
	for i := range page {
		tasks[i] = page[i].task(Legacy)
	}
	result := map[string]any{"tasks": tasks}
	if next != "" {
		result["nextCursor"] = next
	}
	return result, nil
}

func requestError(ctx context.Context, method, value string, err error) error {
	value = shorten(value)
	switch {
	case errors.Is(err, ErrUnknown):
		return &Error{Code: CodeInvalidParams, Message: fmt.Sprintf("%s: taskId %q: unknown or expired", method, value)}
	case errors.Is(err, ErrCursor):
		return &Error{Code: CodeInvalidParams, Message: fmt.Sprintf("%s: cursor %q: not one that this server has returned", method, value)}
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return &Error{Code: CodeInternal, Message: fmt.Sprintf("%s: the store of the tasks: %v", method, err)}
}

// shorten cuts a stranger's text for a message.
func shorten(text string) string {
	const most = 64
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

func missingCapability() error {
	return &Error{
		Code: CodeMissingCapability, Message: "Missing required client capability",
		Data: json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + ExtensionID + `":{}}}}`),
	}
}
