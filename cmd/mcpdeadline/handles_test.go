package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// SPEC 10.1: the list of tools has the limits, and all that the server says.
func TestDeclares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := connect(t, "-total", "90s", "-idle", "40s", "-tool", "sleep:total=1h,grace=2s")
		const list = `{"jsonrpc":"2.0","id":1,"result":{"tools":[` +
			`{"_meta":{"io.github.tooldeadline/limits":{"graceMs":2000,"idleMs":40000,"progressMs":10000,"totalMs":3600000},"theirs":1.50},"inputSchema":{"type":"object"},"name":"sleep","outputSchema":{"type":"object"}},` +
			`{"_meta":{"io.github.tooldeadline/limits":{"graceMs":7000,"idleMs":40000,"progressMs":10000,"totalMs":90000}},"inputSchema":{"type":"object"},"name":"echo"}],"x":1}}`
		var got, want any
		_ = json.Unmarshal([]byte(h.await(h.ask("1", "tools/list", `{}`), "tools/list").raw), &got)
		_ = json.Unmarshal([]byte(list), &want)
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		quiet := connect(t, "-declare=false")
		if w := quiet.await(quiet.ask("1", "tools/list", `{}`), "tools/list"); strings.Contains(w.raw, "limits") || strings.Contains(w.raw, "wait_for_result") {
			t.Error(w.raw)
		}
	})
}

// continued returns the id in an answer that says that the call is still running.
func continued(t *testing.T, w wire) string {
	t.Helper()
	var c struct{ ID string }
	if err := json.Unmarshal(w.Result.Meta["io.github.tooldeadline/continuation"], &c); err != nil || w.Result.IsError || !strings.HasPrefix(w.text(), "Still running after ") {
		t.Fatal(w.raw)
	}
	return `{"id":"` + c.ID + `"}`
}

// SPEC 12: a host that knows no tasks gets the result of a call that takes longer than it waits.
func TestContinuation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := connect(t, "-soft", "500ms", "-idle", "30s", "-tool", "echo:soft=0", "-tool", "exit:soft=0")
		list := h.await(h.ask("1", "tools/list", `{}`), "tools/list").raw
		if !strings.Contains(list, `"name":"wait_for_result"`) || strings.Contains(list, "outputSchema") || !strings.Contains(list, `"softMs":500`) {
			t.Error(list)
		}
		begun := time.Now()
		id := continued(t, h.call("2", "sleep", `{"ms":12000}`))
		// No two calls of the tool are alike: hosts end a session that repeats one.
		waits, next := 1, id
		w := h.call("3", "wait_for_result", id)
		for ; !strings.HasPrefix(w.text(), "done"); w = h.call(fmt.Sprint(10+waits), "wait_for_result", next) {
			waits++
			want := strings.Replace(id, `"}`, fmt.Sprintf(`.%d"}`, waits), 1)
			if next = continued(t, w); waits > 100 || next != want || !strings.Contains(w.text(), strings.Replace(want, ":", ": ", 1)) {
				t.Fatal(w.raw)
			}
		}
		if waits < 2 { // a busy machine is late for some of them
			t.Errorf("%d waits", waits)
		}
		if w := h.call("34", "wait_for_result", next); w.text() != "done" { // all ids that were told stay valid
			t.Error(w.raw)
		}
		if w.text() != "done" || time.Since(begun) < 12*time.Second {
			t.Error(w.raw)
		}
		if w := h.call("4", "wait_for_result", id); w.text() != "done" { // SPEC 12.3
			t.Error(w.raw)
		}
		if w := h.call("5", "wait_for_result", `{"id":"x"}`); !w.Result.IsError || !strings.Contains(w.text(), "unknown") {
			t.Error(w.raw)
		}
		if w := h.call("35", "wait_for_result", `{}`); !w.Result.IsError || !strings.Contains(w.text(), `"id" is missing`) {
			t.Error(w.raw)
		}
		// A fast call is answered as usual.
		if w := h.call("6", "echo", `{"text":"x"}`); w.raw != `{"jsonrpc":"2.0","id":6,"result":{"content":[{"type":"text","text":"x"}]}}` {
			t.Error(w.raw)
		}
		// Aborting the call reaches the server. Cancelling the wait does not.
		id = continued(t, h.call("7", "half", `{}`))
		h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
		if id = continued(t, h.call("8", "wait_for_result", id)); !strings.HasSuffix(id, `.2"}`) {
			t.Error(id)
		}
		w = h.call("9", "wait_for_result", strings.Replace(id, "}", `,"cancel":true}`, 1))
		if !w.Result.IsError || w.text() != "wait_for_result only waits. Call cancel_running_call to stop the call." {
			t.Error(w.raw)
		}
		w = h.call("33", "cancel_running_call", id)
		if w.outcome() != "aborted 130" || !strings.Contains(w.text(), "half of it") {
			t.Error(w.raw)
		}
		// The result of a lost call says so.
		id = continued(t, h.call("30", "hang", `{}`))
		h.call("31", "exit", `{}`)
		if w := h.call("32", "wait_for_result", id); !w.Result.IsError || !strings.Contains(w.text(), "exit status 5") {
			t.Error(w.raw)
		}
		last := h.start("36", "wait_for_result", continued(t, h.call("37", "sleep", `{"ms":60000}`)), "")
		synctest.Wait()
		h.stop()
		if w := <-last; !strings.Contains(w.raw, "the server is shutting down") {
			t.Error(w.raw)
		}
	})
}

// Two servers of a host that does not prefix the names of tools: each has names of its own, the same at each
// start, and an id says whose it is.
func TestTwoServersOfOneHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := func(h *client) (wait string) {
			w := h.await(h.ask(`"list"`, "tools/list", `{}`), "tools/list")
			var list struct {
				Result struct{ Tools []struct{ Name string } }
			}
			if err := json.Unmarshal([]byte(w.raw), &list); err != nil || len(list.Result.Tools) != 4 || strings.Count(w.raw, `"readOnlyHint":true`) != 1 {
				t.Fatal(w.raw)
			}
			wait, cancel := list.Result.Tools[2].Name, list.Result.Tools[3].Name
			if !strings.HasPrefix(wait, "wait_for_result_evil_") || cancel != "cancel_running_call"+strings.TrimPrefix(wait, "wait_for_result") || len(wait) > 64 || len(cancel) > 64 {
				t.Errorf("%q, %q", wait, cancel)
			}
			return wait
		}
		one, again := connect(t, "-host", "continue", "-soft", "300ms"), connect(t, "-host", "continue", "-soft", "300ms")
		two := connect(t, "-host", "continue", "-soft", "301ms")
		if a, b, c := names(one), names(again), names(two); a != b || a == c {
			t.Errorf("%q, %q, %q", a, b, c)
		}
		w := one.call("1", "sleep", `{"ms":6000}`)
		id := continued(t, w)
		if !strings.HasPrefix(id, `{"id":"evil.`) || !strings.Contains(w.text(), "Call "+names(one)+" with "+strings.Replace(id, ":", ": ", 1)) {
			t.Error(w.raw)
		}
		for n := 2; w.text() != "done"; n++ {
			if w = one.call(fmt.Sprint(n), names(one), id); n > 100 {
				t.Fatal(w.raw)
			}
		}
		foreign := strings.Replace(id, "evil.", "good.", 1)
		for _, foreign := range []string{foreign, strings.Replace(foreign, `"}`, `.2"}`, 1)} {
			if w := two.call("1", names(two), foreign); !w.Result.IsError || !strings.Contains(w.text(), "is one of the server good") {
				t.Error(w.raw)
			}
		}
		if w := two.call("2", names(two), id); !w.Result.IsError || !strings.Contains(w.text(), "unknown") {
			t.Error(w.raw)
		}
	})
}

// SPEC 11: a host that knows tasks of 2025-11-25.
func TestTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startProxy(t, nil, append([]string{"-soft", "300ms"}, evilArgs(t)...)...)
		w := h.await(h.ask(`"init"`, "initialize", initialize), "initialize")
		if !strings.Contains(w.raw, `"tasks":{"cancel":{},"list":{},"requests":{"tools":{"call":{}}}}`) || !strings.Contains(w.raw, `"x-unknown":{"kept":[1,2.50]}`) {
			t.Error(w.raw)
		}
		h.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		if w := h.await(h.ask("1", "tools/list", `{}`), "tools/list"); strings.Count(w.raw, `"taskSupport":"optional"`) != 2 {
			t.Error(w.raw)
		}
		taskOf := func(w wire) string {
			var r struct {
				Result struct {
					Task struct{ TaskID, Status string }
				}
			}
			if err := json.Unmarshal([]byte(w.raw), &r); err != nil || r.Result.Task.Status != "working" {
				t.Fatal(w.raw)
			}
			return `{"taskId":"` + r.Result.Task.TaskID + `"}`
		}
		id := taskOf(h.await(h.ask("2", "tools/call", `{"name":"sleep","arguments":{"ms":12000},"task":{"ttl":60000}}`), "sleep"))
		if w := h.await(h.ask("3", "tasks/get", id), "tasks/get"); !strings.Contains(w.raw, `"status":"working"`) {
			t.Error(w.raw)
		}
		if w := h.await(h.ask("4", "tasks/result", id), "tasks/result"); w.text() != "done" || w.Result.Meta["io.modelcontextprotocol/related-task"] == nil {
			t.Error(w.raw)
		}
		id = taskOf(h.await(h.ask("5", "tools/call", `{"name":"hang","task":{}}`), "hang"))
		if w := h.await(h.ask("6", "tasks/cancel", id), "tasks/cancel"); !strings.Contains(w.raw, `"status":"cancelled"`) {
			t.Error(w.raw)
		}
		n := 7
		eventually(t, "the cancellation at the server", func() bool {
			n++
			return strings.Contains(h.call(fmt.Sprint(n), "seen", `{}`).text(), "notifications/cancelled")
		})
		// SPEC 11.4: its progress goes on after the handle, until it is final.
		id = taskOf(h.await(h.ask("500", "tools/call", `{"name":"progress","arguments":{"ms":2500},"task":{},"_meta":{"progressToken":"of a task"}}`), "progress"))
		h.await(h.ask("501", "tasks/result", id), "tasks/result")
		told := h.got(`"progressToken":"of a task"`)
		if len(told) < 3 {
			t.Errorf("%q", told)
		}
		h.call("502", "sleep", `{"ms":200}`)
		if after := h.got(`"progressToken":"of a task"`); len(after) != len(told) {
			t.Errorf("after the end: %q", after[len(told):])
		}
		// A request without task is answered with a continuation.
		continued(t, h.call("1000", "sleep", `{"ms":10000}`))
	})
}

const declaring = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`

// SPEC 11: a host that knows tasks of 2026-07-28, and a tool that asks after its handle.
func TestTasksExtension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startProxy(t, nil, append([]string{"-soft", "300ms"}, evilArgs(t)...)...)
		if w := h.await(h.ask("1", "server/discover", `{`+declaring+`}`), "discover"); !strings.Contains(w.raw, `"extensions":{"io.modelcontextprotocol/tasks":{}}`) {
			t.Error(w.raw)
		}
		type polled struct {
			Result struct {
				ResultType, TaskID, Status string
				InputRequests              map[string]any
				Result                     struct {
					Content []struct{ Text string }
				}
			}
		}
		read := func(w wire) (p polled) {
			if err := json.Unmarshal([]byte(w.raw), &p); err != nil {
				t.Fatal(w.raw)
			}
			return p
		}
		n := 100
		poll := func(id, status string) (p polled) {
			eventually(t, status, func() bool {
				n++
				p = read(h.await(h.ask(fmt.Sprint(n), "tasks/get", `{"taskId":"`+id+`",`+declaring+`}`), "tasks/get"))
				return p.Result.Status == status
			})
			return p
		}
		w := h.await(h.ask("2", "tools/call", `{"name":"sleep","arguments":{"ms":6000},`+declaring+`}`), "sleep")
		handle := read(w)
		if handle.Result.ResultType != "task" || handle.Result.Status != "working" {
			t.Fatal(w.raw)
		}
		if p := poll(handle.Result.TaskID, "completed"); len(p.Result.Result.Content) != 1 || p.Result.Result.Content[0].Text != "done" {
			t.Errorf("%+v", p)
		}
		handle = read(h.await(h.ask("3", "tools/call", `{"name":"question","arguments":{},`+declaring+`}`), "question"))
		id := handle.Result.TaskID
		p := poll(id, "input_required")
		for key := range p.Result.InputRequests {
			h.await(h.ask("4", "tasks/update", `{"taskId":"`+id+`","inputResponses":{"`+key+`":{"action":"accept"}},`+declaring+`}`), "tasks/update")
		}
		if p := poll(id, "completed"); len(p.Result.Result.Content) != 1 || p.Result.Result.Content[0].Text != "s1 accept" {
			t.Errorf("%+v", p)
		}
		// A client that did not declare tasks gets none.
		meta := strings.Replace(declaring, `"extensions":{"io.modelcontextprotocol/tasks":{}}`, "", 1)
		if w := h.await(h.ask("5", "tools/call", `{"name":"sleep","arguments":{"ms":900},`+meta+`}`), "sleep"); read(w).Result.ResultType == "task" {
			t.Error(w.raw)
		}
	})
}

// SPEC 12: a call that is refused does not reach the server. (The tool exit would end it.)
func TestTaskOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := connect(t, "-config", file(t, `{"tools":{"exit":{"task_only":true}}}`))
		if w := h.call("1", "exit", `{}`); !strings.Contains(w.raw, `"code":-32601`) || !strings.Contains(w.raw, "can only be called as a task") {
			t.Error(w.raw)
		}
		if w := h.call("2", "echo", `{"text":"x"}`); w.text() != "x" {
			t.Error(w.raw)
		}
		if w := h.call("1", "exit", `{}`); !strings.Contains(w.raw, `"code":-32601`) { // its id is free again
			t.Error(w.raw)
		}
		if said := h.stderr(); strings.Contains(said, "level=WARN") {
			t.Error(said)
		}
	})
}
