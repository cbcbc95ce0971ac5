package adapter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// The adapter of these examples: a call under limits, and its result as JSON.

func supervised(f func(ctx context.Context) (string, error)) func(context.Context, *adapter.Task, map[string]json.RawMessage) (string, error) {
	return func(ctx context.Context, run *adapter.Task, _ map[string]json.RawMessage) (string, error) {
		return toolcall.Do(ctx, nil, toolcall.Call{Tool: "build"}, f)
	}
}

func asResult(text string, err error) task.Answer {
	if err != nil {
		text = toolcall.Text(err, text)
	}
	raw, _ := json.Marshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}, "isError": err != nil})
	return task.Answer{Result: raw}
}

func ask(tasks *task.Tasks, c adapter.Caller, method, id string) map[string]any {
	params, _ := json.Marshal(map[string]any{"taskId": id})
	fields, err := adapter.Serve(context.Background(), tasks, nil, c, method, params)
	if err != nil {
		fmt.Println(err)
	}
	return fields
}

// A client of protocol 2025-11-25 asks for a task, has it at once, and fetches the result.
func ExampleDo() {
	tasks := new(task.Tasks)
	defer tasks.Close()
	client := adapter.Caller{Version: "2025-11-25", Session: "stdio"}
	p := &policy.Policy{Tools: map[string]policy.Tool{"build": {Soft: 10 * time.Second}}}

	soft, taskOnly := p.Soft("build")
	_, record, err := do(context.Background(), tasks,
		adapter.Call{Tool: "build", Caller: client, Asked: json.RawMessage(`{}`), Soft: soft, TaskOnly: taskOnly},
		supervised(func(ctx context.Context) (string, error) {
			time.Sleep(10 * time.Millisecond)
			return "built", nil
		}), asResult)
	if err != nil || record == nil {
		fmt.Println(record, err)
		return
	}
	fmt.Println(record.Status)
	result := ask(tasks, client, "tasks/result", record.ID)
	fmt.Printf("%s\n", result["content"])
	// Output:
	// working
	// [{"text":"built","type":"text"}]
}

// A client that knows no tasks learns in time how to wait for the result.
func ExampleContinuation() {
	tasks := new(task.Tasks)
	defer tasks.Close()
	continuation := &adapter.Continuation{After: 100 * time.Millisecond}
	client := adapter.Caller{Version: "2025-06-18", Session: "stdio"}

	_, record, _ := do(context.Background(), tasks, adapter.Call{Tool: "build", Caller: client, Continuation: continuation},
		supervised(func(ctx context.Context) (string, error) {
			progress.Report(ctx, progress.Update{Progress: 3, Total: 10, Message: "main.go"})
			time.Sleep(200 * time.Millisecond)
			return "built", nil
		}), asResult)
	fmt.Println(handleOf(record)["content"].([]any)[0].(map[string]any)["text"].(string)[:41])

	continuation.After = time.Minute
	args, _ := json.Marshal(map[string]any{"arguments": map[string]any{"id": record.ID}})
	result, err := adapter.Serve(context.Background(), tasks, continuation, client, "tools/call", args)
	fmt.Printf("%s %v\n", result["content"], err)
	// Output:
	// Still running after 0.1s.
	// main.go 3 of 10
	// [{"text":"built","type":"text"}] <nil>
}

func ExampleServe() {
	tasks := new(task.Tasks)
	defer tasks.Close()
	_, err := adapter.Serve(context.Background(), tasks, nil, adapter.Caller{Version: "2026-07-28", Declared: true}, "tasks/get", json.RawMessage(`{"taskId":"x"}`))
	var e *task.Error
	fmt.Println(errors.As(err, &e), e.Code, e.Message)
	// Output: true -32602 tasks/get: taskId "x": unknown or expired
}

// A server that ends aborts what runs, and a client still gets the partial result.
func ExampleDo_shutdown() {
	tasks := &task.Tasks{Poll: 2 * time.Second}
	client := adapter.Caller{Version: "2026-07-28", Declared: true}
	started := make(chan struct{})
	_, record, _ := do(context.Background(), tasks, adapter.Call{Tool: "build", Caller: client, Soft: -1},
		supervised(func(ctx context.Context) (string, error) {
			close(started)
			<-ctx.Done()
			return "half", nil
		}), asResult)
	<-started
	handle := handleOf(record)
	fmt.Println(handle["resultType"], handle["status"], handle["pollIntervalMs"], tasks.Close())
	raw, _ := json.Marshal(ask(tasks, client, "tasks/get", record.ID)["result"])
	fmt.Println(string(raw))
	// Output:
	// task working 2000 <nil>
	// {"content":[{"text":"Tool was aborted: the server is shutting down\n\nPartial output:\nhalf","type":"text"}],"isError":true,"resultType":"complete"}
}

func ExampleEndSession() {
	tasks := new(task.Tasks)
	defer tasks.Close()
	started, stopped := make(chan struct{}), make(chan error)
	_, _, _ = do(context.Background(), tasks, adapter.Call{
		Tool: "build", Caller: adapter.Caller{Version: "2025-06-18", Session: "1"}, Continuation: &adapter.Continuation{After: time.Millisecond},
	}, supervised(func(ctx context.Context) (string, error) {
		close(started)
		<-ctx.Done()
		stopped <- context.Cause(ctx)
		return "", nil
	}), asResult)
	<-started
	adapter.EndSession(tasks, "1")
	fmt.Println(errors.Is(<-stopped, toolcall.ErrSessionEnded))
	// Output: true
}

// An adapter sends progress through the run of its call.
func ExampleTaskOf() {
	tasks := new(task.Tasks)
	handed := make(chan struct{})
	_, record, _ := do(context.Background(), tasks,
		adapter.Call{Tool: "build", Caller: adapter.Caller{Version: "2026-07-28", Declared: true}, Soft: 200 * time.Millisecond},
		supervised(func(ctx context.Context) (string, error) {
			run := adapter.TaskOf(ctx, nil)
			send := func(string, task.Form) error { fmt.Println("sent"); return nil }
			_ = run.Notify(send)
			<-handed
			_ = run.Notify(send) // no more: the client has a handle
			return "", run.Ask(ctx, func(id string, form task.Form, _ func() (context.Context, error)) error {
				fmt.Println(form, id != "")
				return nil
			})
		}), asResult)
	close(handed)
	fmt.Println(record != nil, tasks.Close())
	// Unordered output:
	// sent
	// 2026-07-28 true
	// true <nil>
}

func ExampleContinuation_Definition() {
	tool := (&adapter.Continuation{After: 45 * time.Second}).Definition()
	fmt.Println(tool["name"])
	// Output: wait_for_result
}

// A tool that always ends before its calls could be continued keeps its output schema.
func ExampleContinuation_Unlisted() {
	c := &adapter.Continuation{After: 45 * time.Second}
	fmt.Println(c.Unlisted(timeout.Default(), 0), c.Unlisted(timeout.Config{Total: 30 * time.Second}, 0))
	// Output: true false
}
