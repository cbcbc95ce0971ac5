package adapter_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const s = time.Second

// The codes of JSON-RPC, and of the protocol, with which calls and requests are answered.
const codeMethodNotFound, codeInvalidParams, codeInternal, codeMissingCapability = -32601, -32602, -32603, -32021

var (
	legacy   = adapter.Caller{Version: "2025-11-25", Principal: "ann"}
	declared = adapter.Caller{Version: "2026-07-28", Declared: true, Principal: "ann"}
	knowing  = adapter.Caller{Version: "2026-07-28", Principal: "ann"} // nothing of tasks
)

// methods are those of the protocol, and one that is none.
var methods = []string{"tasks/get", "tasks/update", "tasks/cancel", "tasks/result", "tasks/list", "tasks/other"}

// asks is the "task" of a call that asks for one.
var asks = json.RawMessage(`{}`)

func askedIf(yes bool) json.RawMessage {
	if yes {
		return asks
	}
	return nil
}

// text is a result with one text.
func text(t string) map[string]any {
	return map[string]any{"content": []any{map[string]any{"type": "text", "text": t}}}
}

// encode is what an adapter makes of what a tool has returned.
func encode(value string, err error) task.Answer {
	var e *task.Error
	if errors.As(err, &e) {
		return task.Answer{Error: e}
	}
	fields := text(value)
	if err != nil {
		fields = text(toolcall.Text(err, value))
		fields["isError"] = true
		if o, ok := toolcall.OutcomeOf(err); ok {
			fields["_meta"] = map[string]any{toolcall.OutcomeKey: o}
		}
	}
	raw, _ := json.Marshal(fields)
	return task.Answer{Result: raw}
}

// tool runs a function as a tool of a server.
func tool(limits timeout.Config, f func(ctx context.Context) (string, error)) func(context.Context, *adapter.Task, map[string]json.RawMessage) (string, error) {
	return func(ctx context.Context, run *adapter.Task, _ map[string]json.RawMessage) (string, error) {
		return toolcall.Do(ctx, &toolcall.Settings{Limits: &limits}, toolcall.Call{Tool: "build"}, f)
	}
}

// handles are the answers with which calls have become tasks, by the ids of these.
var handles sync.Map

func handleOf(r *task.Record) map[string]any {
	fields, _ := handles.Load(r.ID)
	return fields.(map[string]any)
}

// do is adapter.Do, with the record of a call that has become a task.
func do[R any](
	ctx context.Context, tasks *task.Tasks, c adapter.Call,
	run func(context.Context, *adapter.Task, map[string]json.RawMessage) (R, error), encode func(R, error) task.Answer,
) (value R, record *task.Record, err error) {
	value, err = adapter.Do(ctx, tasks, c, run, encode, func(r *task.Record, fields map[string]any) (none R, _ error) {
		record = r
		handles.Store(r.ID, fields)
		return none, nil
	})
	return value, record, err
}

// waitTool calls the wait tool.
func waitTool(ctx context.Context, c *adapter.Continuation, tasks *task.Tasks, client adapter.Caller, arguments string, answers map[string]json.RawMessage) (map[string]any, error) {
	given, _ := json.Marshal(answers)
	return adapter.Serve(ctx, tasks, c, client, "tools/call", json.RawMessage(`{"arguments":`+cmp.Or(arguments, "null")+`,"inputResponses":`+string(given)+`}`))
}

// lasting is a tool that takes d.
func lasting(d time.Duration) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		select {
		case <-time.After(d):
			return "done", nil
		case <-ctx.Done():
			return "half", context.Cause(ctx)
		}
	}
}

// serve is the answer to a request, as a client reads it.
func serve(t testing.TB, tasks *task.Tasks, c adapter.Caller, method, params string) (map[string]any, error) {
	t.Helper()
	fields, err := adapter.Serve(t.Context(), tasks, nil, c, method, json.RawMessage(params))
	if err != nil {
		return nil, err
	}
	return wire(t, fields), nil
}

// mustServe is the answer to a request about a task, which is no error.
func mustServe(t testing.TB, tasks *task.Tasks, c adapter.Caller, method, id string) map[string]any {
	t.Helper()
	fields, err := serve(t, tasks, c, method, params(id))
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return fields
}

// bubble runs a named test in simulated time.
func bubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func wire(t testing.TB, fields map[string]any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func params(id string) string { return fmt.Sprintf(`{"taskId":%q}`, id) }

// newTasks returns tasks that end with the test, and so do the tools that do not listen.
func newTasks(t *testing.T, tasks *task.Tasks) *task.Tasks {
	t.Cleanup(func() {
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Hour)
	})
	return tasks
}

// begin calls a tool, and fails the test where it does not become a task.
func begin(t testing.TB, ctx context.Context, tasks *task.Tasks, c adapter.Call, run func(context.Context, *adapter.Task, map[string]json.RawMessage) (string, error)) *task.Record {
	t.Helper()
	c.Tool = "build"
	value, record, err := do(ctx, tasks, c, run, encode)
	if err != nil || record == nil || value != "" {
		t.Fatalf("no task: %q, %v, %v", value, record, err)
	}
	return record
}

// SPEC 11.1, 11.2: the client's capabilities decide, and a client that has not declared tasks never gets one. What the
// simulation draws is not here.
func TestForms(t *testing.T) {
	old, older := adapter.Caller{Version: "2025-11-25"}, adapter.Caller{Version: "2025-06-18", Declared: true}
	on := &adapter.Continuation{After: 5 * s}
	for _, tc := range []struct {
		name   string
		client adapter.Caller
		asked  bool
		soft   time.Duration
		only   bool
		c      *adapter.Continuation
		form   task.Form
		after  time.Duration
		code   int
	}{
		{"declared, task only", declared, false, 0, true, nil, task.Extension, 0, 0},
		{"declared, task only, later", declared, false, 3 * s, true, nil, task.Extension, 3 * s, 0},
		{"not declared, task only", knowing, false, 0, true, nil, "", 0, codeMissingCapability},
		{"not declared, task only, continued", knowing, false, -1, true, on, task.Continued, 5 * s, 0},
		{"continued by the tool's own limit", knowing, false, 7 * s, false, &adapter.Continuation{}, task.Continued, 7 * s, 0},
		{"continued by nobody's", knowing, false, -1, false, &adapter.Continuation{}, task.Plain, 10 * s, 0},
		{"asked, task only", old, true, 0, true, nil, task.Legacy, 0, 0},
		{"asked, never", old, true, 0, false, on, "", 0, codeMethodNotFound},
		{"not asked, declared", adapter.Caller{Version: "2025-11-25", Declared: true}, false, 3 * s, false, nil, task.Plain, 10 * s, 0},
		{"not asked, task only", old, false, 3 * s, true, nil, "", 0, codeMethodNotFound},
		{"before tasks", older, true, 3 * s, false, nil, task.Plain, 10 * s, 0},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			start, called := time.Now(), false
			_, record, err := do(t.Context(), newTasks(t, new(task.Tasks)), adapter.Call{
				Tool: "build", Caller: tc.client, Asked: askedIf(tc.asked), Soft: tc.soft, TaskOnly: tc.only, Continuation: tc.c,
			}, func(ctx context.Context, _ *adapter.Task, _ map[string]json.RawMessage) (string, error) {
				called = true
				return lasting(10 * s)(ctx)
			}, encode)
			var e *task.Error
			if errors.As(err, &e); tc.code != 0 {
				if e == nil || e.Code != tc.code || called || record != nil {
					t.Errorf("%+v, %v, called: %v", err, record, called)
				}
				return
			}
			form := task.Plain
			if record != nil {
				form = record.Form
			}
			if err != nil || form != tc.form || time.Since(start) != tc.after {
				t.Errorf("%q, %v after %v", form, err, time.Since(start))
			}
		})
	}
}

// SPEC 3.12: a deadline of the request is a total where it comes first, and no end of a task.
func TestRequestDeadline(t *testing.T) {
	for _, tc := range []struct {
		deadline time.Duration
		asTask   bool
	}{{10 * s, false}, {10*s + 1, true}} {
		synctest.Test(t, func(t *testing.T) {
			tasks := newTasks(t, new(task.Tasks))
			ctx, cancel := context.WithTimeout(t.Context(), tc.deadline)
			defer cancel()
			_, record, err := do(ctx, tasks, adapter.Call{Tool: "build", Caller: declared, Soft: 10 * s}, tool(timeout.Default(), lasting(20*s)), encode)
			if (record != nil) != tc.asTask || !tc.asTask && timeout.ExitCode(err) != timeout.ExitTimeout {
				t.Fatalf("%v: %v, %v", tc.deadline, record, err)
			}
			if tc.asTask {
				time.Sleep(time.Minute)
				if got, err := serve(t, tasks, declared, "tasks/get", params(record.ID)); err != nil || got["status"] != "completed" {
					t.Errorf("%v, %v", got, err)
				}
			}
		})
	}
}

// A panic in the adapter ends the call or the task, and not the process.
func TestPanics(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("ouch") }, "goexit": runtime.Goexit} {
		bubble(t, name, func(t *testing.T) {
			run := func(context.Context, *adapter.Task, map[string]json.RawMessage) (string, error) {
				time.Sleep(2 * s)
				end()
				return "", nil
			}
			var plain any
			func() {
				defer func() { plain = recover() }()
				_, record, err := do(t.Context(), newTasks(t, new(task.Tasks)), adapter.Call{Tool: "build", Caller: declared, Soft: 3 * s}, run, encode)
				if record != nil || !errors.Is(err, timeout.ErrGoexit) {
					t.Errorf("%v, %v", record, err)
				}
			}()
			if p, ok := plain.(*timeout.PanicError); name == "panic" && (!ok || p.Value != "ouch" || !strings.Contains(string(p.Stack), "TestPanics")) {
				t.Errorf("recovered %v", plain)
			}
			tasks := newTasks(t, new(task.Tasks))
			record := begin(t, t.Context(), tasks, adapter.Call{Caller: declared, Soft: s}, run)
			time.Sleep(s)
			synctest.Wait()
			if got := mustServe(t, tasks, declared, "tasks/get", record.ID); got["status"] != "completed" || !strings.Contains(fmt.Sprint(got["result"]), "isError:true") {
				t.Errorf("%v", got)
			}
		})
	}
}

var errGone = errors.New("gone")

// A tool that has returned before the soft limit is answered with its result, although the last of
// its notifications delays that until after it.
func TestReturnedBefore(t *testing.T) {
	for _, tc := range []struct {
		name   string
		takes  time.Duration
		asTask bool
	}{{"before", 10*s - 1, false}, {"after", 10*s + 1, true}} {
		bubble(t, tc.name, func(t *testing.T) {
			start := time.Now()
			value, record, err := do(t.Context(), newTasks(t, new(task.Tasks)), adapter.Call{Tool: "build", Caller: declared, Soft: 10 * s},
				func(ctx context.Context, run *adapter.Task, _ map[string]json.RawMessage) (string, error) {
					return toolcall.Do(ctx, nil, toolcall.Call{Tool: "build", Token: "t", Send: func(context.Context, progress.Notification) error { return nil }},
						func(ctx context.Context) (string, error) {
							time.Sleep(tc.takes)
							progress.Report(ctx, progress.Update{Progress: 1})
							return "done", nil
						})
				}, encode)
			if (record != nil) != tc.asTask || (value == "done") == tc.asTask || err != nil || (time.Since(start) > 10*s) == tc.asTask {
				t.Errorf("%q, %v, %v after %v", value, record, err, time.Since(start))
			}
		})
	}
}
