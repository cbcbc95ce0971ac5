package task_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// The adapter of these examples: a call under limits, and its result as JSON.

func supervised(f func(ctx context.Context) (string, error)) func(context.Context, map[string]json.RawMessage) (string, error) {
	return func(ctx context.Context, _ map[string]json.RawMessage) (string, error) {
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

func request(tasks *task.Tasks, c task.Client, method, id string) map[string]any {
	params, _ := json.Marshal(map[string]any{"taskId": id})
	fields, err := tasks.Serve(context.Background(), task.Request{Method: method, Params: params, Client: c})
	if err != nil {
		fmt.Println(err)
	}
	return fields
}

// A client of protocol 2025-11-25 asks for a task, has it at once, and fetches the result.
func ExampleDo() {
	tasks := task.New()
	defer tasks.Close()
	client := task.Client{Version: "2025-11-25", Session: "stdio"}
	p := &policy.Policy{Tools: map[string]policy.Tool{"build": {Soft: 10 * time.Second}}}

	soft, taskOnly := p.Soft("build")
	_, record, err := task.Do(context.Background(), tasks,
		task.Call{Tool: "build", Client: client, Asked: true, Soft: soft, TaskOnly: taskOnly},
		supervised(func(ctx context.Context) (string, error) {
			time.Sleep(10 * time.Millisecond)
			return "built", nil
		}), asResult)
	if err != nil || record == nil {
		fmt.Println(record, err)
		return
	}
	fmt.Println(record.Status)
	result := request(tasks, client, "tasks/result", record.ID)
	fmt.Printf("%s\n", result["content"])
	// Output:
	// working
	// [{"text":"built","type":"text"}]
}

// A client that knows no tasks is told in time how to wait for the result.
func ExampleTasks_Wait() {
	tasks := task.New()
	defer tasks.Close()
	continuation := &task.Continuation{After: 200 * time.Millisecond}
	client := task.Client{Version: "2025-06-18", Session: "stdio"}

	_, record, _ := task.Do(context.Background(), tasks, task.Call{Tool: "build", Client: client, Continuation: continuation},
		supervised(func(ctx context.Context) (string, error) {
			progress.Report(ctx, progress.Update{Progress: 3, Total: 10, Message: "main.go"})
			time.Sleep(time.Second)
			return "built", nil
		}), asResult)
	fmt.Println(record.Handle()["content"].([]any)[0].(map[string]any)["text"].(string)[:41])

	continuation.After = time.Minute
	args, _ := json.Marshal(map[string]any{"id": record.ID})
	result, err := tasks.Wait(context.Background(), continuation, task.Wait{Arguments: args, Client: client})
	fmt.Printf("%s %v\n", result["content"], err)
	// Output:
	// Still running after 0.2s.
	// main.go 3 of 10
	// [{"text":"built","type":"text"}] <nil>
}

// With a small store and few that run; what does not fit stays plain.
func ExampleNew() {
	tasks := task.New(
		task.WithStore(&task.Memory{MaxTasks: 100, MaxBytes: 8 << 20}),
		task.WithMaxRunning(10),
		task.WithRetention(time.Minute),
		task.WithPoll(2*time.Second),
	)
	defer tasks.Close()
	_, record, _ := task.Do(context.Background(), tasks,
		task.Call{Tool: "build", Client: task.Client{Version: "2026-07-28", Declared: true}, Soft: -1},
		supervised(func(context.Context) (string, error) { return "built", nil }), asResult)
	handle := record.Handle()
	fmt.Println(handle["resultType"], handle["status"], handle["pollIntervalMs"])
	// Output: task working 2000
}

func ExampleWithStore() {
	tasks := task.New(task.WithStore(&task.Memory{MaxBytes: 8 << 20}))
	fmt.Println(tasks.Close())
	// Output: <nil>
}

func ExampleWithPoll() {
	tasks := task.New(task.WithPoll(5 * time.Second))
	fmt.Println(tasks.Close())
	// Output: <nil>
}

func ExampleWithRetention() {
	tasks := task.New(task.WithRetention(time.Hour))
	fmt.Println(tasks.Close())
	// Output: <nil>
}

// One call may become a task at a time; another is answered with its result.
func ExampleWithMaxRunning() {
	tasks := task.New(task.WithMaxRunning(1))
	defer tasks.Close()
	call := task.Call{Tool: "build", Client: task.Client{Version: "2026-07-28", Declared: true}, Soft: -1}
	for range 2 {
		value, record, _ := task.Do(context.Background(), tasks, call, supervised(func(ctx context.Context) (string, error) {
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
			return "built", nil
		}), asResult)
		fmt.Printf("%q %v\n", value, record != nil)
	}
	// Output:
	// "" true
	// "built" false
}

func ExampleTasks_Serve() {
	tasks := task.New()
	defer tasks.Close()
	_, err := tasks.Serve(context.Background(), task.Request{
		Method: "tasks/get", Params: json.RawMessage(`{"taskId":"x"}`),
		Client: task.Client{Version: "2026-07-28", Declared: true},
	})
	var e *task.Error
	fmt.Println(errors.As(err, &e), e.Code, e.Message)
	// Output: true -32602 tasks/get: taskId "x": unknown or expired
}

// What runs is aborted, and leaves its partial result.
func ExampleTasks_Shutdown() {
	tasks := task.New()
	client := task.Client{Version: "2026-07-28", Declared: true}
	started := make(chan struct{})
	_, record, _ := task.Do(context.Background(), tasks, task.Call{Tool: "build", Client: client, Soft: -1},
		supervised(func(ctx context.Context) (string, error) {
			close(started)
			<-ctx.Done()
			return "half", nil
		}), asResult)
	<-started
	ctx, cancel := context.WithTimeout(context.Background(), toolcall.ShutdownLimit)
	defer cancel()
	fmt.Println(tasks.Shutdown(ctx))
	raw, _ := json.Marshal(request(tasks, client, "tasks/get", record.ID)["result"])
	fmt.Println(string(raw))
	// Output:
	// <nil>
	// {"content":[{"text":"Tool was aborted: the server is shutting down\n\nPartial output:\nhalf","type":"text"}],"isError":true,"resultType":"complete"}
}

func ExampleTasks_EndSession() {
	tasks := task.New()
	defer tasks.Close()
	started, stopped := make(chan struct{}), make(chan error)
	_, _, _ = task.Do(context.Background(), tasks, task.Call{
		Tool: "build", Client: task.Client{Version: "2025-06-18", Session: "1"}, Continuation: &task.Continuation{After: time.Millisecond},
	}, supervised(func(ctx context.Context) (string, error) {
		close(started)
		<-ctx.Done()
		stopped <- context.Cause(ctx)
		return "", nil
	}), asResult)
	<-started
	tasks.EndSession("1")
	fmt.Println(errors.Is(<-stopped, toolcall.ErrSessionEnded))
	// Output: true
}

// An adapter sends progress through the run of its call.
func ExampleFromContext() {
	tasks := task.New()
	handed := make(chan struct{})
	_, record, _ := task.Do(context.Background(), tasks,
		task.Call{Tool: "build", Client: task.Client{Version: "2026-07-28", Declared: true}, Soft: 200 * time.Millisecond},
		supervised(func(ctx context.Context) (string, error) {
			run := task.FromContext(ctx)
			send := func() error { fmt.Println("sent"); return nil }
			_ = run.Notify(send)
			<-handed
			_ = run.Notify(send) // no more: the client has a handle
			form, is := run.Handed()
			fmt.Println(form, is)
			return "", nil
		}), asResult)
	close(handed)
	fmt.Println(record != nil, tasks.Close())
	// Unordered output:
	// sent
	// 2026-07-28 true
	// true <nil>
}

func ExampleMethods() {
	fmt.Println(task.Methods("2026-07-28"))
	fmt.Println(task.Methods("2025-11-25"))
	fmt.Println(task.Methods("2025-06-18"))
	// Output:
	// [tasks/get tasks/update tasks/cancel]
	// [tasks/get tasks/result tasks/list tasks/cancel]
	// []
}

func ExampleLegacyCapability() {
	raw, _ := json.Marshal(task.LegacyCapability(true))
	fmt.Println(string(raw))
	// Output: {"cancel":{},"list":{},"requests":{"tools":{"call":{}}}}
}

func ExampleLegacySupport() {
	fmt.Printf("%q %q %q\n", task.LegacySupport(0, false), task.LegacySupport(30*time.Second, false), task.LegacySupport(-1, true))
	// Output: "" "optional" "required"
}

func ExampleContinuation_Definition() {
	tool := (&task.Continuation{After: 45 * time.Second}).Definition()
	fmt.Println(tool["name"])
	// Output: wait_for_result
}

func ExampleContinuation_Soft() {
	c := &task.Continuation{After: 45 * time.Second}
	fmt.Println(c.Soft(0), c.Soft(10*time.Second), c.Soft(time.Minute))
	// Output: 45s 10s 45s
}

// A tool that always ends before its calls could be continued keeps its output schema.
func ExampleContinuation_Unlisted() {
	c := &task.Continuation{After: 45 * time.Second}
	fmt.Println(c.Unlisted(timeout.Default(), 0), c.Unlisted(timeout.Config{Total: 30 * time.Second}, 0))
	// Output: true false
}

func ExampleRecord_Lost() {
	r := task.Record{ID: "x", Status: task.Working, Retention: time.Minute}.Lost(time.Now())
	fmt.Println(r.Status, r.Status.Final(), r.Message)
	// Output: failed true the process that ran the task is gone
}
