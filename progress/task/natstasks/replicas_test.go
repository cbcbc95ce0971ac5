package natstasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// slack bounds how long a test waits for something that a store does as soon as it can. Only a test that fails waits so
// long.
const slack = 20 * time.Second

// replicas are the tasks of two replicas of one store: one runs the tools, the other is asked.
type replicas struct{ runs, asks *task.Tasks }

// SPEC 11.8, 13.3: tasks of one replica through another.
func TestReplicas(t *testing.T) {
	testReplicas(t, func(t *testing.T) (runs, asks task.Store) {
		w := newWorld(t, server.Options{JetStream: true})
		return w.open(), w.open()
	})
}

func testReplicas(t *testing.T, open func(t *testing.T) (runs, asks task.Store)) {
	for _, tc := range []struct {
		name string
		test func(replicas, *testing.T)
	}{
		{"a result", replicas.testResult},
		{"a cancel", replicas.testCancel},
		{"an abort of a continuation", replicas.testAbort},
		{"answers to questions", replicas.testQuestions},
		{"another's task", replicas.testOther},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a, b := open(t)
			tc.test(replicas{runs: newTasks(t, a), asks: newTasks(t, b)}, t)
		})
	}
}

func newTasks(t *testing.T, s task.Store) *task.Tasks {
	tasks := &task.Tasks{Store: s, Poll: 50 * time.Millisecond}
	t.Cleanup(func() {
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
	})
	return tasks
}

var (
	declared = adapter.Caller{Version: "2026-07-28", Declared: true, Principal: "ann"}
	legacy   = adapter.Caller{Version: "2025-11-25", Principal: "ann"}
)

// A value is the result of a tool of these tests.
type value struct {
	text      string
	questions map[string]json.RawMessage
}

func encode(v value, err error) task.Answer {
	if len(v.questions) > 0 {
		return task.Answer{Questions: v.questions}
	}
	text := v.text
	if err != nil {
		text = toolcall.Text(err, text)
	}
	raw, _ := json.Marshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}, "isError": err != nil})
	return task.Answer{Result: raw}
}

// begin calls a tool as a task, and returns the record with which the call was answered.
func (r replicas) begin(t *testing.T, c adapter.Call, tool func(ctx context.Context, run *adapter.Task, answers map[string]json.RawMessage) (value, error)) *task.Record {
	t.Helper()
	c.Tool = "build"
	var record *task.Record
	_, err := adapter.Do(t.Context(), r.runs, c, func(ctx context.Context, run *adapter.Task, answers map[string]json.RawMessage) (value, error) {
		return toolcall.Do(ctx, nil, toolcall.Call{Tool: "build"}, func(ctx context.Context) (value, error) { return tool(ctx, run, answers) })
	}, encode, func(of *task.Record, _ map[string]any) (value, error) { record = of; return value{}, nil })
	if err != nil || record == nil {
		t.Fatalf("no task: %v", err)
	}
	return record
}

// ask sends a request to the replica that does not run the tool, and returns the result as decoded JSON.
func (r replicas) ask(ctx context.Context, c adapter.Caller, method string, params map[string]any) (map[string]any, error) {
	raw, _ := json.Marshal(params)
	fields, err := adapter.Serve(ctx, r.asks, nil, c, method, raw)
	if err != nil {
		return nil, err
	}
	raw, err = json.Marshal(fields)
	var out map[string]any
	return out, errors.Join(err, json.Unmarshal(raw, &out))
}

func (r replicas) get(t *testing.T, id string) map[string]any {
	t.Helper()
	got, err := r.ask(t.Context(), declared, "tasks/get", map[string]any{"taskId": id})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// eventually polls the task through the other replica until wanted returns true, and returns the answer. It fails the
// test after slack.
func (r replicas) eventually(t *testing.T, id, what string, wanted func(map[string]any) bool) map[string]any {
	t.Helper()
	var got map[string]any
	for end := time.Now().Add(slack); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if got = r.get(t, id); wanted(got) {
			return got
		}
	}
	t.Fatalf("%s: still %v", what, got)
	return nil
}

func hasStatus(status task.Status) func(map[string]any) bool {
	return func(got map[string]any) bool { return got["status"] == string(status) }
}

func (r replicas) testResult(t *testing.T) {
	goOn := make(chan struct{})
	record := r.begin(t, adapter.Call{Caller: declared, Soft: -1}, func(ctx context.Context, _ *adapter.Task, _ map[string]json.RawMessage) (value, error) {
		progress.Report(ctx, progress.Update{Progress: 3, Total: 10, Message: "main.go"})
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return value{text: "done"}, nil
	})
	if got := r.get(t, record.ID); got["status"] != "working" {
		t.Errorf("right after the handle: %v", got)
	}
	r.eventually(t, record.ID, "the message", func(got map[string]any) bool { return got["statusMessage"] == "main.go 3 of 10" })
	blocked := make(chan error, 1)
	go func() {
		got, err := r.ask(t.Context(), legacy, "tasks/result", map[string]any{"taskId": record.ID})
		if err == nil && fmt.Sprint(got["content"]) != "[map[text:done type:text]]" {
			err = fmt.Errorf("%v", got)
		}
		blocked <- err
	}()
	select {
	case err := <-blocked:
		t.Errorf("tasks/result before the end: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	close(goOn)
	select {
	case err := <-blocked:
		if err != nil {
			t.Errorf("tasks/result: %v", err)
		}
	case <-time.After(slack):
		t.Error("tasks/result does not return")
	}
	got := r.eventually(t, record.ID, "the end", hasStatus(task.Completed))
	if fmt.Sprint(got["result"]) != "map[content:[map[text:done type:text]] isError:false resultType:complete]" {
		t.Errorf("%v", got)
	}
	list, err := r.ask(t.Context(), legacy, "tasks/list", nil)
	if all, _ := list["tasks"].([]any); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}

func (r replicas) testCancel(t *testing.T) {
	started, stopped := make(chan struct{}), make(chan error, 1)
	record := r.begin(t, adapter.Call{Caller: declared, Soft: -1}, func(ctx context.Context, _ *adapter.Task, _ map[string]json.RawMessage) (value, error) {
		close(started)
		<-ctx.Done()
		stopped <- context.Cause(ctx)
		return value{text: "too late"}, nil
	})
	<-started // a cancel before the start would keep the tool from starting
	if _, err := r.ask(t.Context(), declared, "tasks/cancel", map[string]any{"taskId": record.ID}); err != nil {
		t.Fatal(err)
	}
	if got := r.get(t, record.ID); got["status"] != "cancelled" {
		t.Errorf("right after the cancel: %v", got)
	}
	select {
	case err := <-stopped:
		if !errors.Is(err, task.ErrCancelled) {
			t.Errorf("the tool was stopped by %v", err)
		}
	case <-time.After(slack):
		t.Error("the tool does not learn of it")
	}
	const words = "Tool was aborted: the task was cancelled\n\nPartial output:\ntoo late"
	result, err := r.ask(t.Context(), legacy, "tasks/result", map[string]any{"taskId": record.ID})
	if err != nil || fmt.Sprint(result["content"]) != "[map[text:"+words+" type:text]]" || result["isError"] != true {
		t.Errorf("what the tool has returned: %v, %v", result, err)
	}
	if err := r.runs.Close(); err != nil {
		t.Error(err)
	}
	if got := r.get(t, record.ID); got["status"] != "cancelled" {
		t.Errorf("after the tool: %v", got)
	}
	_, err = r.ask(t.Context(), legacy, "tasks/cancel", map[string]any{"taskId": record.ID})
	if e := (*task.Error)(nil); !errors.As(err, &e) || e.Code != -32602 {
		t.Errorf("a second one: %v", err)
	}
}

func (r replicas) testAbort(t *testing.T) {
	c := &adapter.Continuation{After: 50 * time.Millisecond}
	client := adapter.Caller{Version: "2026-07-28", Principal: "ann"}
	record := r.begin(t, adapter.Call{Caller: client, Continuation: c}, func(ctx context.Context, _ *adapter.Task, _ map[string]json.RawMessage) (value, error) {
		heartbeat.Beat(ctx)
		<-ctx.Done()
		return value{text: "half"}, nil
	})
	c = &adapter.Continuation{After: slack}
	raw, _ := json.Marshal(map[string]any{"arguments": map[string]any{"id": record.ID, "cancel": true}})
	got, err := adapter.Serve(t.Context(), r.asks, c, client, "tools/call", raw)
	if err != nil {
		t.Fatal(err)
	}
	raw, _ = json.Marshal(got)
	want, _ := json.Marshal("Tool was aborted: the task was cancelled\n\nPartial output:\nhalf")
	if fields := map[string]json.RawMessage{}; json.Unmarshal(raw, &fields) != nil ||
		string(fields["content"]) != `[{"text":`+string(want)+`,"type":"text"}]` || string(fields["isError"]) != "true" {
		t.Errorf("%s", raw)
	}
}

func (r replicas) testQuestions(t *testing.T) {
	question := json.RawMessage(`{"method":"elicitation/create","params":{"message":"Delete?"}}`)
	var calls atomic.Int32
	record := r.begin(t, adapter.Call{Caller: declared, Soft: -1},
		func(ctx context.Context, run *adapter.Task, answers map[string]json.RawMessage) (value, error) {
			if calls.Add(1) < 3 {
				return value{questions: map[string]json.RawMessage{"ok": question, "name": question}}, nil
			}
			return value{text: string(answers["ok"]) + string(answers["name"])}, nil
		})
	for round := 1; round <= 2; round++ {
		ok, name := fmt.Sprintf("%d.ok", round), fmt.Sprintf("%d.name", round)
		asked := func(keys ...string) func(map[string]any) bool {
			return func(got map[string]any) bool {
				all, _ := got["inputRequests"].(map[string]any)
				for _, key := range keys {
					if all[key] == nil {
						return false
					}
				}
				return hasStatus(task.InputRequired)(got) && len(all) == len(keys)
			}
		}
		r.eventually(t, record.ID, "both questions", asked(ok, name))
		for _, answers := range []map[string]any{{ok: 1, "0.ok": 7, "other": 8}, {ok: 9}} {
			if _, err := r.ask(t.Context(), declared, "tasks/update", map[string]any{"taskId": record.ID, "inputResponses": answers}); err != nil {
				t.Fatal(err)
			}
			r.eventually(t, record.ID, "one question", asked(name))
		}
		if _, err := r.ask(t.Context(), declared, "tasks/update", map[string]any{"taskId": record.ID, "inputResponses": map[string]any{name: 2}}); err != nil {
			t.Fatal(err)
		}
	}
	got := r.eventually(t, record.ID, "the end", hasStatus(task.Completed))
	if fmt.Sprint(got["result"]) != "map[content:[map[text:12 type:text]] isError:false resultType:complete]" {
		t.Errorf("%v", got)
	}
	if n := calls.Load(); n != 3 {
		t.Errorf("%d calls of the tool", n)
	}
}

func (r replicas) testOther(t *testing.T) {
	record := r.begin(t, adapter.Call{Caller: declared, Soft: -1}, func(ctx context.Context, _ *adapter.Task, _ map[string]json.RawMessage) (value, error) {
		<-ctx.Done()
		return value{}, nil
	})
	for _, c := range []adapter.Caller{{Principal: "bob"}, {}, {Session: "ann"}, {Principal: "ANN"}} {
		c.Version, c.Declared = "2026-07-28", true
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			_, err := r.ask(t.Context(), c, method, map[string]any{"taskId": record.ID})
			if e := (*task.Error)(nil); !errors.As(err, &e) || e.Code != -32602 {
				t.Errorf("%s by %+v: %v", method, c, err)
			}
		}
	}
	if got := r.get(t, record.ID); got["status"] != "working" {
		t.Errorf("%v", got)
	}
}
