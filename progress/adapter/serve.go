package adapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tooldeadline/tooldeadline/internal/exact"
	"github.com/tooldeadline/tooldeadline/internal/running"
	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

type requestParams struct {
	TaskID         *string                    `json:"taskId"`
	Cursor         string                     `json:"cursor"`
	InputResponses map[string]json.RawMessage `json:"inputResponses"`
	Arguments      json.RawMessage            `json:"arguments"`
}

// listPage is how many tasks a page of tasks/list has.
const listPage = 50

// Serve answers a request of a tasks/* method or, if wait is not nil, a tools/call of its wait tool. The params are as
// they were received, and may be nil. Serve returns the fields of the result, as values for encoding/json, or a
// [*task.Error]. tasks/result waits until the task is
// final and, if the task was cancelled, until the tool has returned, but at most for the grace of the tool and 3 s.
// If ctx ends before, the error is the cause of ctx. If the store fails, the code of the error is -32603; if the
// error of a tasks/cancel says so, the task is cancelled as soon as the store can be reached again.
//
// Serve refuses methods that the client's protocol does not have, and, from 2026-07-28 on, a client
// that has not declared [task.ExtensionID]. It offers tasks/list only if the caller has a principal
// or a session.
//
// A call of the wait tool, with the arguments {"id": "...", "cancel": true}, waits until the continued call ends, After
// (or 30 s if After is 0 or less) has passed, or ctx ends; a client that says how long it waits, see [policy.Budget],
// gets an answer before that. The result is exactly the call's; or it says that the call is still running; or its
// isError is true, and its text says that the arguments are invalid, that the id is unknown, has expired or belongs to
// another session, or that the store cannot be reached. cancel aborts the call first. If the tool has returned
// questions, the result has them, and the next call of the wait tool the answers. The progress of the call is passed on
// by [progress.Report] to the execution of ctx, whose idle check is held meanwhile: call Serve under no limits.
func Serve(ctx context.Context, tasks *task.Tasks, wait *Continuation, c Caller, method string, params json.RawMessage) (map[string]any, error) {
	waits := wait != nil && method == "tools/call"
	if !waits && !slices.Contains(methods(c.Version), method) || method == "tasks/list" && c.Principal == "" && c.Session == "" {
		return nil, &task.Error{Code: codeMethodNotFound, Message: fmt.Sprintf("method not found: %q", method)}
	}
	if !waits && c.modern() && !c.Declared {
		return nil, missingCapability()
	}
	var p requestParams
	if len(params) > 0 {
		if err := exact.Unmarshal(params, &p); err != nil {
			return nil, &task.Error{Code: codeInvalidParams, Message: method + ": params: " + err.Error()}
		}
	}
	if waits {
		return wait.serve(ctx, tasks, c, p.Arguments, p.InputResponses)
	}
	form := task.Legacy
	if c.modern() {
		form = task.Extension
	}
	owner := c.owner(form)
	if method == "tasks/list" {
		return listOf(ctx, tasks.Core().Store, owner, p.Cursor)
	}
	if p.TaskID == nil {
		return nil, &task.Error{Code: codeInvalidParams, Message: method + ": taskId is missing"}
	}
	id := *p.TaskID
	core := tasks.Core()
	local := find(core, owner, id)
	if local != nil {
		local.change(func(s *state) { s.seen = true })
	}

	var record task.Record
	var err error
	switch method {
	case "tasks/get":
		if record, err = core.Store.Get(ctx, owner, id); err == nil {
			return fieldsOf(&record, form), nil
		}
	case "tasks/result":
		if local != nil {
			defer local.fetch(ctx)()
		}
		if record, err = await(ctx, core.Store, owner, id, nil); err == nil {
			record, err = awaitAnswer(ctx, core.Store, local, record)
		}
		if err == nil {
			return resultOf(&record)
		}
	case "tasks/cancel":
		var ended bool
		record, err = change(ctx, core.Store, owner, id, func(record *task.Record) bool {
			if ended = record.Status.Final(); !ended {
				cancelled(record)
			}
			return !ended
		})
		switch {
		case err != nil:
			err = keepCancel(core, owner, id, err)
		case form == task.Legacy && ended:
			return nil, &task.Error{Code: codeInvalidParams, Message: fmt.Sprintf("tasks/cancel: the task is %s already", legacyStatus(&record))}
		case form == task.Legacy:
			return fieldsOf(&record, form), nil
		}
	case "tasks/update":
		_, err = change(ctx, core.Store, owner, id, func(record *task.Record) bool { return respond(record, p.InputResponses) })
	}
	if err != nil {
		return nil, requestError(ctx, method, id, err)
	}
	return map[string]any{"resultType": "complete"}, nil
}

// await waits until the task is final, and calls changed, if it is not nil, with each record on
// the way.
func await(ctx context.Context, store task.Store, owner, id string, changed func(*task.Record)) (task.Record, error) {
	record, err := store.Get(ctx, owner, id)
	for err == nil && !record.Status.Final() {
		if changed != nil {
			changed(&record)
		}
		record, err = store.Wait(ctx, owner, id, record.Revision)
	}
	return record, err
}

func listOf(ctx context.Context, store task.Store, owner, cursor string) (map[string]any, error) {
	page, next, err := store.List(ctx, owner, cursor, listPage)
	if err != nil {
		return nil, requestError(ctx, "tasks/list", cursor, err)
	}
	tasks := make([]any, len(page))
	for i := range page {
		tasks[i] = fieldsOf(&page[i], task.Legacy)
	}
	result := map[string]any{"tasks": tasks}
	if next != "" {
		result["nextCursor"] = next
	}
	return result, nil
}

// find returns the task that runs in this process under an id, or nil.
func find(core running.Core[task.Store], owner, id string) *Task {
	if run := core.Running.Find(owner, id); run != nil {
		local, _ := run.Of.(*Task) // nil if run stands for a cancel that came before its call
		return local
	}
	return nil
}

// EndSession aborts the continuations of a session, with [toolcall.ErrSessionEnded] as the cause:
// no other session can fetch their results. Tasks run on. session is the Session of a [Caller]; for "" EndSession does
// nothing.
func EndSession(tasks *task.Tasks, session string) {
	if session != "" {
		tasks.Core().Running.Abort((&Caller{Session: session}).owner(task.Continued), toolcall.ErrSessionEnded)
	}
}

func requestError(ctx context.Context, method, value string, err error) error {
	value = texts.Short(value, 64)
	switch {
	case errors.Is(err, task.ErrUnknown):
		return &task.Error{Code: codeInvalidParams, Message: fmt.Sprintf("%s: taskId %q: unknown or expired", method, value)}
	case errors.Is(err, task.ErrCursor):
		return &task.Error{Code: codeInvalidParams, Message: fmt.Sprintf("%s: cursor %q: not one that this server has returned", method, value)}
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return &task.Error{Code: codeInternal, Message: fmt.Sprintf("%s: the store of the tasks: %v", method, err)}
}

func missingCapability() error {
	return &task.Error{
		Code: codeMissingCapability, Message: "Missing required client capability",
		Data: json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + task.ExtensionID + `":{}}}}`),
	}
}
