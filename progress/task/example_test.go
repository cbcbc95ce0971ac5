package task_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// The adapter of these examples: a call under limits, and its result as JSON.

func supervised(f func(ctx context.Context) (string, error)) func(context.Context, *adapter.Task, map[string]json.RawMessage) (string, error) {
	return func(ctx context.Context, run *adapter.Task, _ map[string]json.RawMessage) (string, error) {
		return toolcall.Do(ctx, nil, toolcall.Call{Tool: "build", Observer: run.Observer()}, f)
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
	fields, err := adapter.Serve(context.Background(), tasks, adapter.Request{Method: method, Params: params, Caller: c})
	if err != nil {
		fmt.Println(err)
	}
	return fields
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
	_, record, _ := adapter.Do(context.Background(), tasks,
		adapter.Call{Tool: "build", Caller: adapter.Caller{Version: "2026-07-28", Declared: true}, Soft: -1},
		supervised(func(context.Context) (string, error) { return "built", nil }), asResult)
	handle := adapter.Handle(record)
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
	call := adapter.Call{Tool: "build", Caller: adapter.Caller{Version: "2026-07-28", Declared: true}, Soft: -1}
	for range 2 {
		value, record, _ := adapter.Do(context.Background(), tasks, call, supervised(func(ctx context.Context) (string, error) {
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

// What runs is aborted, and leaves its partial result.
func ExampleTasks_Shutdown() {
	tasks := task.New()
	client := adapter.Caller{Version: "2026-07-28", Declared: true}
	started := make(chan struct{})
	_, record, _ := adapter.Do(context.Background(), tasks, adapter.Call{Tool: "build", Caller: client, Soft: -1},
		supervised(func(ctx context.Context) (string, error) {
			close(started)
			<-ctx.Done()
			return "half", nil
		}), asResult)
	<-started
	ctx, cancel := context.WithTimeout(context.Background(), toolcall.ShutdownLimit)
	defer cancel()
	fmt.Println(tasks.Shutdown(ctx))
	raw, _ := json.Marshal(ask(tasks, client, "tasks/get", record.ID)["result"])
	fmt.Println(string(raw))
	// Output:
	// <nil>
	// {"content":[{"text":"Tool was aborted: the server is shutting down\n\nPartial output:\nhalf","type":"text"}],"isError":true,"resultType":"complete"}
}

func ExampleRecord_Lost() {
	r := task.Record{ID: "x", Status: task.Working, Retention: time.Minute}.Lost(time.Now())
	fmt.Println(r.Status, r.Status.Final(), r.Message)
	// Output: failed true the process that ran the task is gone
}
