package adapter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// exactly fails the test where fields are not this JSON; ID stands for the task's.
func exactly(t *testing.T, what string, fields map[string]any, id, want string) {
	t.Helper()
	var w map[string]any
	if err := json.Unmarshal([]byte(strings.ReplaceAll(want, "ID", id)), &w); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w, wire(t, fields)); diff != "" {
		t.Errorf("%s: -want +got:\n%s", what, diff)
	}
}

// SPEC 3.23: a cancellation is of the request that it names, however the number is spelled.
func TestCancelledIDs(t *testing.T) {
	for raw, want := range map[string]any{
		`1`: int64(1), `-7`: int64(-7), `9007199254740993`: int64(9007199254740993), `"1"`: "1", `"a\u0062"`: "ab", `""`: "",
		`1.0`: int64(1), `1e3`: int64(1000), `-7.00`: int64(-7),
		`1.5`: nil, `1e20`: nil, `1e999`: nil, `null`: nil, `true`: nil, `[1]`: nil, `{}`: nil,
	} {
		id, cause, ok := adapter.Cancelled([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + raw + `,"reason":"why"}}`))
		if ok != (want != nil) || id != want || ok && cause.Reason != "why" {
			t.Errorf("%s: %v, %v, %v", raw, id, cause, ok)
		}
	}
}

// reporting is a tool that reports every second for ten seconds.
func reporting(end func() (string, error)) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		for i := range 10 {
			progress.Report(ctx, progress.Update{Progress: float64(i), Total: 10, Message: "main.go"})
			if v, err := lasting(s)(ctx); err != nil {
				return v, err
			}
		}
		return end()
	}
}

func done() (string, error) { return "done", nil }

// answers fails the test where the answer to a request about a task is not this JSON.
func answers(t *testing.T, tasks *task.Tasks, c adapter.Caller, method, id, want string) {
	t.Helper()
	exactly(t, method, mustServe(t, tasks, c, method, id), id, want)
}

const complete = `{"resultType":"complete"}`

// SPEC 11.2, 11.3, 11.4: the words of protocol 2025-11-25.
func TestLegacyWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := newTasks(t, new(task.Tasks))
		r := begin(t, t.Context(), tasks, adapter.Call{Caller: legacy, Asked: asks, Soft: 30 * s}, tool(timeout.Default(), reporting(done)))
		exactly(t, "handle", handleOf(r), r.ID, `{"task":{"taskId":"ID","status":"working","createdAt":"2000-01-01T00:00:00.000Z","lastUpdatedAt":"2000-01-01T00:00:00.000Z","ttl":null,"pollInterval":1000}}`)
		time.Sleep(4*s + s/2)
		const working = `{"taskId":"ID","status":"working","statusMessage":"main.go 4 of 10","createdAt":"2000-01-01T00:00:00.000Z","lastUpdatedAt":"2000-01-01T00:00:04.000Z","ttl":null,"pollInterval":1000}`
		answers(t, tasks, legacy, "tasks/get", r.ID, working)
		answers(t, tasks, legacy, "tasks/list", r.ID, `{"tasks":[`+working+`]}`)
		answers(t, tasks, legacy, "tasks/result", r.ID, `{"content":[{"type":"text","text":"done"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"ID"}}}`)
		if d := time.Since(r.Created); d != 10*s {
			t.Errorf("the result after %v", d)
		}
		answers(t, tasks, legacy, "tasks/get", r.ID, `{"taskId":"ID","status":"completed","statusMessage":"main.go 9 of 10","createdAt":"2000-01-01T00:00:00.000Z","lastUpdatedAt":"2000-01-01T00:00:10.000Z","ttl":610000,"pollInterval":1000}`)
	})
}

// SPEC 11.2, 11.3, 11.4: the words of the extension.
func TestExtensionWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := newTasks(t, &task.Tasks{Poll: 2 * s, Retention: time.Minute})
		r := begin(t, t.Context(), tasks, adapter.Call{Caller: declared, Soft: 4*s + s/2}, tool(timeout.Default(), reporting(done)))
		exactly(t, "handle", handleOf(r), r.ID, `{"resultType":"task","taskId":"ID","status":"working","statusMessage":"main.go 4 of 10","createdAt":"2000-01-01T00:00:04.500Z","lastUpdatedAt":"2000-01-01T00:00:04.500Z","ttlMs":null,"pollIntervalMs":2000}`)
		time.Sleep(s) // the first beat is at 5 s, and then one every two
		synctest.Wait()
		answers(t, tasks, declared, "tasks/get", r.ID, `{"resultType":"complete","taskId":"ID","status":"working","statusMessage":"main.go 5 of 10","createdAt":"2000-01-01T00:00:04.500Z","lastUpdatedAt":"2000-01-01T00:00:05.000Z","ttlMs":null,"pollIntervalMs":2000}`)
		time.Sleep(5 * s)
		const final = `{"resultType":"complete","taskId":"ID","status":"completed","statusMessage":"main.go 9 of 10","createdAt":"2000-01-01T00:00:04.500Z","lastUpdatedAt":"2000-01-01T00:00:10.000Z","ttlMs":65500,"pollIntervalMs":2000,"result":{"resultType":"complete","content":[{"type":"text","text":"done"}]}}`
		answers(t, tasks, declared, "tasks/get", r.ID, final)
		answers(t, tasks, declared, "tasks/update", r.ID, complete)
		answers(t, tasks, declared, "tasks/cancel", r.ID, complete)
		answers(t, tasks, declared, "tasks/get", r.ID, final)
	})
}

// SPEC 11.2: how each protocol has failures, and JSON-RPC errors.
func TestFailures(t *testing.T) {
	protocol := &task.Error{Code: -32000, Message: "broken", Data: json.RawMessage(`{"x":1}`)}
	for _, tc := range []struct {
		name           string
		err            error
		legacy, modern string
		result         *task.Error // of tasks/result
	}{
		{"isError", errors.New("no such file"),
			`{"taskId":"ID","status":"failed","statusMessage":"no such file\n\nPartial output:\nhalf","createdAt":"2000-01-01T00:00:00.000Z","lastUpdatedAt":"2000-01-01T00:00:10.000Z","ttl":610000,"pollInterval":1000}`,
			`{"resultType":"complete","taskId":"ID","status":"completed","statusMessage":"main.go 9 of 10","createdAt":"2000-01-01T00:00:00.000Z","lastUpdatedAt":"2000-01-01T00:00:10.000Z","ttlMs":610000,"pollIntervalMs":1000,"result":{"resultType":"complete","isError":true,"content":[{"type":"text","text":"no such file\n\nPartial output:\nhalf"}]}}`, nil},
		{"error", protocol,
			`{"taskId":"ID","status":"failed","statusMessage":"broken","createdAt":"2000-01-01T00:00:00.000Z","lastUpdatedAt":"2000-01-01T00:00:10.000Z","ttl":610000,"pollInterval":1000}`,
			`{"resultType":"complete","taskId":"ID","status":"failed","statusMessage":"broken","createdAt":"2000-01-01T00:00:00.000Z","lastUpdatedAt":"2000-01-01T00:00:10.000Z","ttlMs":610000,"pollIntervalMs":1000,"error":{"code":-32000,"message":"broken","data":{"x":1}}}`, protocol},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			tasks := newTasks(t, new(task.Tasks))
			r := begin(t, t.Context(), tasks, adapter.Call{Caller: declared, Soft: -1}, tool(timeout.Default(), reporting(func() (string, error) { return "half", tc.err })))
			time.Sleep(11 * s)
			answers(t, tasks, legacy, "tasks/get", r.ID, tc.legacy)
			answers(t, tasks, declared, "tasks/get", r.ID, tc.modern)
			_, err := serve(t, tasks, legacy, "tasks/result", params(r.ID))
			var e *task.Error
			errors.As(err, &e)
			if diff := cmp.Diff(tc.result, e); diff != "" {
				t.Errorf("tasks/result: %v: %s", err, diff)
			}
			_, err = serve(t, tasks, legacy, "tasks/cancel", params(r.ID))
			if want := "tasks/cancel: the task is failed already"; err == nil || err.Error() != want {
				t.Errorf("tasks/cancel: %v", err)
			}
		})
	}
}

// A failure whose text is long has the beginning of it as its status message, in whole characters.
func TestLongFailure(t *testing.T) {
	long := strings.Repeat("ä", 20<<10)
	for name, err := range map[string]error{"isError": errors.New(long), "error": &task.Error{Code: -32000, Message: long}} {
		bubble(t, name, func(t *testing.T) {
			tasks := newTasks(t, new(task.Tasks))
			r := begin(t, t.Context(), tasks, adapter.Call{Caller: legacy, Asked: asks, Soft: -1}, tool(timeout.Default(), func(context.Context) (string, error) { return "", err }))
			synctest.Wait()
			if got := mustServe(t, tasks, legacy, "tasks/get", r.ID); got["statusMessage"] != strings.Repeat("ä", 8<<10)+"..." {
				t.Errorf("%.40v", got["statusMessage"])
			}
		})
	}
}

// SPEC 11.2, 11.5: cancel, in both protocols, and what of it is an error.
func TestCancelWire(t *testing.T) {
	const cancelled = `{"taskId":"ID","status":"cancelled","statusMessage":"the task was cancelled","createdAt":"2000-01-01T00:00:00.000Z","lastUpdatedAt":"2000-01-01T00:00:02.500Z","ttl":602500,"pollInterval":1000}`
	for c, want := range map[adapter.Caller]string{legacy: cancelled, declared: complete} {
		bubble(t, c.Version, func(t *testing.T) {
			tasks := newTasks(t, new(task.Tasks))
			r := begin(t, t.Context(), tasks, adapter.Call{Caller: c, Asked: asks, Soft: -1}, tool(timeout.Default(), reporting(done)))
			time.Sleep(2*s + s/2)
			answers(t, tasks, c, "tasks/cancel", r.ID, want)
			time.Sleep(time.Minute)
			answers(t, tasks, legacy, "tasks/get", r.ID, cancelled)
			if c == declared {
				answers(t, tasks, c, "tasks/cancel", r.ID, complete)
				return
			}
			got, err := serve(t, tasks, c, "tasks/cancel", params(r.ID))
			if e := (*task.Error)(nil); !errors.As(err, &e) || e.Code != codeInvalidParams {
				t.Errorf("again: %v, %v", got, err)
			}
		})
	}
}

// SPEC 11.2, 11.3: what a request gets that does not go with the protocol, or asks for what is not there.
func TestBadRequests(t *testing.T) {
	older := adapter.Caller{Version: "2025-06-18", Principal: "ann"}
	synctest.Test(t, func(t *testing.T) {
		tasks := newTasks(t, new(task.Tasks))
		r := begin(t, t.Context(), tasks, adapter.Call{Caller: declared, Soft: -1}, tool(timeout.Default(), lasting(s)))
		own := params(r.ID)
		const unknown, invalid, missing = codeMethodNotFound, codeInvalidParams, codeMissingCapability
		for _, tc := range []struct {
			client  adapter.Caller
			method  string
			params  string
			code    int
			message string
		}{
			{older, "tasks/get", own, unknown, `method not found: "tasks/get"`},
			{legacy, "tasks/update", own, unknown, `method not found: "tasks/update"`},
			{declared, "tasks/list", "", unknown, `method not found: "tasks/list"`},
			{adapter.Caller{Version: "2025-11-25"}, "tasks/list", "", unknown, `method not found: "tasks/list"`},
			{knowing, "tasks/get", own, missing, "Missing required client capability"},
			{declared, "tasks/get", "", invalid, "tasks/get: taskId is missing"},
			{declared, "tasks/get", "null", invalid, "tasks/get: taskId is missing"},
			{declared, "tasks/get", `{"taskId":1}`, invalid, "tasks/get: params: json: cannot unmarshal number into Go struct field requestParams.taskId of type string"},
			{declared, "tasks/cancel", `{"taskId":"` + strings.Repeat("x", 100) + `"}`, invalid, `tasks/cancel: taskId "` + strings.Repeat("x", 64) + `...": unknown or expired`},
			{declared, "tasks/update", `{"taskId":"x","inputResponses":{"a":1}}`, invalid, `tasks/update: taskId "x": unknown or expired`},
			{legacy, "tasks/result", `{"taskId":"x"}`, invalid, `tasks/result: taskId "x": unknown or expired`},
			{legacy, "tasks/list", `{"cursor":"x"}`, invalid, `tasks/list: cursor "x": not one that this server has returned`},
		} {
			_, err := serve(t, tasks, tc.client, tc.method, tc.params)
			e := (*task.Error)(nil)
			if !errors.As(err, &e) || e.Code != tc.code || e.Message != tc.message {
				t.Errorf("%s %s: %+v\nwant %s", tc.method, tc.params, err, tc.message)
			}
			if tc.code == missing && string(e.Data) != `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}` {
				t.Errorf("%s", e.Data)
			}
		}
	})
}

// SPEC 11.3: ids cannot be guessed, nor used by another principal or from another session.
func TestOwners(t *testing.T) {
	client := func(principal, session string) adapter.Caller {
		return adapter.Caller{Version: "2026-07-28", Declared: true, Principal: principal, Session: session}
	}
	all := []adapter.Caller{client("ann", "1"), client("ann", "2"), client("ann", ""), client("bob", "1"), client("", "1"), client("", "2"), client("1", ""), client("", "")}
	synctest.Test(t, func(t *testing.T) {
		tasks := newTasks(t, new(task.Tasks))
		for _, owner := range []adapter.Caller{client("ann", "1"), client("", "1"), client("", "")} {
			r := begin(t, t.Context(), tasks, adapter.Call{Caller: owner, Soft: -1}, tool(timeout.Default(), lasting(s)))
			if len(r.ID) < 26 { // of 32 letters each
				t.Errorf("the id %q", r.ID)
			}
			for _, c := range all {
				may := c.Principal == owner.Principal && (c.Principal != "" || c.Session == owner.Session)
				for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
					if _, err := serve(t, tasks, c, method, params(r.ID)); (err == nil) != may {
						t.Errorf("%s of %+v by %+v: %v", method, owner, c, err)
					}
				}
			}
		}
	})
}

// SPEC 11.2: a list of many has pages.
func TestListPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := newTasks(t, &task.Tasks{MaxRunning: 1000})
		const n = 120
		for range n {
			begin(t, t.Context(), tasks, adapter.Call{Caller: legacy, Asked: asks, Soft: -1}, tool(timeout.Default(), lasting(s)))
		}
		seen := map[any]bool{}
		pages := 0
		for next := any(""); next != nil; pages++ {
			got, err := serve(t, tasks, legacy, "tasks/list", fmt.Sprintf(`{"cursor":%q}`, next))
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range got["tasks"].([]any) {
				seen[one.(map[string]any)["taskId"]] = true
			}
			next = got["nextCursor"]
		}
		if len(seen) != n || pages != 3 {
			t.Errorf("%d tasks on %d pages", len(seen), pages)
		}
	})
}

// SPEC 11.9: a client's ttl is answered with what is granted, no more than the retention allows and no
// less than it takes to fetch the result. A task is kept until its end in any case.
func TestTTL(t *testing.T) {
	for _, tc := range []struct {
		name    string
		client  adapter.Caller
		asked   string
		takes   time.Duration
		granted any // milliseconds
		kept    time.Duration
	}{
		{"null", legacy, `{"ttl":null}`, 10 * s, nil, 5 * time.Minute},
		{"less than the retention", legacy, `{"ttl":60000}`, 10 * s, 60000., time.Minute},
		{"more", legacy, `{"ttl":300001}`, 10 * s, 300000., 5 * time.Minute},
		{"for ever", legacy, `{"ttl":1e300}`, 10 * s, 300000., 5 * time.Minute},
		{"a fraction", legacy, `{"ttl":60000.5}`, 10 * s, 60000., time.Minute + time.Millisecond/2},
		{"ten polls", legacy, `{"ttl":20000}`, 10 * s, 20000., 20 * s},
		{"less than ten polls", legacy, `{"ttl":0}`, 10 * s, 20000., 20 * s},
		{"less than the tool takes", legacy, `{"ttl":60000}`, 90 * s, 60000., time.Minute},
		{"the extension looks at none", declared, `{"ttl":"soon"}`, 10 * s, nil, 5 * time.Minute},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			tasks := newTasks(t, &task.Tasks{Retention: 5 * time.Minute, Poll: 2 * s})
			r := begin(t, t.Context(), tasks, adapter.Call{Caller: tc.client, Asked: json.RawMessage(tc.asked), Soft: -1}, tool(timeout.Config{}, lasting(tc.takes)))
			key := "ttlMs"
			fields := wire(t, handleOf(r))
			if tc.client == legacy {
				key, fields = "ttl", fields["task"].(map[string]any)
			}
			if got, ok := fields[key]; !ok || got != tc.granted {
				t.Errorf("the handle: %v", fields)
			}
			at := func(instant time.Duration, want any) {
				t.Helper()
				time.Sleep(instant - time.Since(r.Created))
				if got := mustServe(t, tasks, tc.client, "tasks/get", r.ID); got[key] != want {
					t.Errorf("at %v: %v", instant, got)
				}
			}
			at(min(tc.takes, tc.kept)-1, tc.granted)
			if tc.takes > tc.kept { // it outlives what was granted
				at(tc.kept, nil)
				at(tc.takes-1, nil)
			}
			at(tc.takes+tc.kept-1, float64((tc.takes + tc.kept).Milliseconds()))
			time.Sleep(time.Nanosecond)
			if _, err := serve(t, tasks, tc.client, "tasks/get", params(r.ID)); err == nil {
				t.Error("it is kept for longer")
			}
		})
	}
	for _, bad := range []string{`{"ttl":"soon"}`, `{"ttl":-1}`, `[]`} {
		_, record, err := do(t.Context(), new(task.Tasks), adapter.Call{Tool: "build", Caller: legacy, Asked: json.RawMessage(bad), Soft: -1}, tool(timeout.Default(), lasting(0)), encode)
		var e *task.Error
		if errors.As(err, &e); record != nil || e == nil || e.Code != codeInvalidParams || !strings.Contains(e.Message, "ttl") || !strings.Contains(e.Message, bad) {
			t.Errorf("%s: %v, %v", bad, record, err)
		}
	}
}
