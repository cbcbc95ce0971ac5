package adapter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

var host = adapter.Caller{Version: "2025-06-18", Session: "1"}

func waitFor(t *testing.T, tasks *task.Tasks, c *adapter.Continuation, client adapter.Caller, args string) map[string]any {
	t.Helper()
	fields, err := waitTool(t.Context(), c, tasks, client, args, nil)
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

func byID(id string) string { return fmt.Sprintf(`{"id":%q}`, id) }

// said is the text of a result.
func said(fields map[string]any) string {
	raw, _ := json.Marshal(fields["content"])
	var content []struct{ Text string }
	if json.Unmarshal(raw, &content) != nil || len(content) != 1 {
		return "not one text: " + string(raw)
	}
	return content[0].Text
}

// SPEC 12.2: the wait shows progress as the call's own, is not idle itself, and what ends it
// does not end the call.
func TestWaitProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks, c := newTasks(t, new(task.Tasks)), &adapter.Continuation{After: 4*s + s/2}
		silent := func(ctx context.Context) (string, error) {
			if _, err := reporting(done)(ctx); err != nil {
				return "", err
			}
			return lasting(30 * s)(ctx)
		}
		r := begin(t, t.Context(), tasks, adapter.Call{Caller: host, Continuation: c}, tool(timeout.Default(), silent))
		c.After = time.Hour
		var sent []progress.Notification
		ctx, cancel := context.WithTimeout(t.Context(), 15*s)
		defer cancel()
		server := &toolcall.Settings{Limits: &timeout.Config{Idle: 3 * s}, Interval: time.Nanosecond}
		_, err := toolcall.Do(ctx, server, toolcall.Call{Tool: "wait", Token: "t", Send: func(_ context.Context, n progress.Notification) error {
			sent = append(sent, n)
			return nil
		}}, func(ctx context.Context) (map[string]any, error) {
			return waitTool(ctx, c, tasks, host, byID(r.ID), nil)
		})
		if !errors.Is(err, timeout.ErrTotal) || len(sent) != 6 || sent[0].Progress != 4 || sent[5].Progress != 9 || sent[5].Total != 10 || sent[5].Message != "main.go" {
			t.Errorf("%v, %+v", err, sent)
		}
		if got := said(waitFor(t, tasks, c, host, byID(r.ID))); got != "done" {
			t.Errorf("afterwards: %s", got)
		}
	})
}

// SPEC 12.3: an id that is not there says why.
func TestWaitErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks, c := newTasks(t, new(task.Tasks)), &adapter.Continuation{After: s, Tool: "await_call"}
		r := begin(t, t.Context(), tasks, adapter.Call{Caller: host, Continuation: c}, tool(timeout.Default(), lasting(4*s-1)))
		own := begin(t, t.Context(), tasks, adapter.Call{Caller: adapter.Caller{Version: "2025-06-18", Session: "1", Principal: "ann"}, Continuation: c}, tool(timeout.Default(), lasting(3*s)))
		as := begin(t, t.Context(), tasks, adapter.Call{Caller: declared, Soft: -1}, tool(timeout.Default(), lasting(3*s)))
		for _, tc := range []struct {
			name   string
			client adapter.Caller
			args   string
			want   string
		}{
			{"unknown", host, `{"id":"x"}`, `The id "x" is unknown: no call has it.`},
			{"unknown, of a later wait", host, `{"id":"x.2"}`, `The id "x" is unknown: no call has it.`},
			{"no number", host, byID(r.ID + ".x"), `The id "` + r.ID + `.x" is unknown: no call has it.`},
			{"no number of a wait", host, byID(r.ID + ".-1"), `The id "` + r.ID + `.-1" is unknown: no call has it.`},
			{"too great a number", host, byID(r.ID + ".4294967296"), `The id "` + r.ID + `.4294967296" is unknown: no call has it.`},
			{"another session", adapter.Caller{Version: "2025-06-18", Session: "2"}, byID(r.ID), `The call with the id "` + r.ID + `" belongs to another session.`},
			{"another session's cancel", adapter.Caller{Version: "2025-06-18", Session: "2"}, `{"id":"` + r.ID + `","cancel":true}`, `The call with the id "` + r.ID + `" belongs to another session.`},
			{"another session of the same principal", adapter.Caller{Version: "2025-06-18", Session: "2", Principal: "ann"}, byID(own.ID), `The call with the id "` + own.ID + `" belongs to another session.`},
			{"a task", declared, byID(as.ID), `The id "` + as.ID + `" is unknown: no call has it.`},
			{"no id", host, ``, `await_call: "id" is missing: it is in the answer of the call that is still running.`},
			{"null", host, `{"id":null}`, `await_call: "id" is missing: it is in the answer of the call that is still running.`},
			{"bad arguments", host, `{"id":1}`, `await_call: arguments: json: cannot unmarshal number into Go struct field waitArguments.id of type string`},
		} {
			got := waitFor(t, tasks, c, tc.client, tc.args)
			if said(got) != tc.want || got["isError"] != true {
				t.Errorf("%s: %v", tc.name, got)
			}
		}
		// It is no task either.
		if _, err := serve(t, tasks, adapter.Caller{Version: "2026-07-28", Declared: true, Session: "1"}, "tasks/get", params(r.ID)); err == nil {
			t.Error("a continuation was read as a task")
		}
		if got := said(waitFor(t, tasks, c, host, byID(r.ID))); got != "Still running after 3s.\nCall await_call with {\"id\": \""+r.ID+".2\"} to wait for the result." {
			t.Errorf("%q", got)
		}
		if got := said(waitFor(t, tasks, c, host, byID(r.ID))); got != "done" {
			t.Errorf("%q", got)
		}
	})
}

// SPEC 12.4: a tool lists an output schema where no call of it can be continued.
func TestUnlisted(t *testing.T) {
	for _, tc := range []struct {
		after, soft time.Duration
		limits      timeout.Config
		want        bool
	}{
		{45 * s, 0, timeout.Default(), true},
		{45 * s, 0, timeout.Config{}, true},
		{45 * s, 0, timeout.Config{Total: 30 * s}, false},
		{45 * s, 0, timeout.Config{Total: 38 * s}, false},
		{45 * s, 0, timeout.Config{Total: 38*s + 1}, true},
		{45 * s, 0, timeout.Config{Total: 44 * s, Grace: s}, false},
		{45 * s, 0, timeout.Config{Total: 45 * s, Grace: -1}, false},
		{45 * s, 0, timeout.Config{Total: -1}, true},
		{45 * s, 10 * s, timeout.Config{Total: 30 * s}, true},
		{0, 10 * s, timeout.Config{Total: 30 * s}, true},
		{0, 0, timeout.Default(), false},
		{0, -1, timeout.Default(), false},
	} {
		if got := (&adapter.Continuation{After: tc.after}).Unlisted(tc.limits, tc.soft); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}

// SPEC 12.2: questions of a tool go out as the result of the wait, and the answers come with the
// next call of it.
func TestWaitQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := adapter.Caller{Version: "2026-07-28", Session: "1"}
		tasks, c := newTasks(t, new(task.Tasks)), &adapter.Continuation{After: s}
		_, r, err := do(t.Context(), tasks, adapter.Call{Tool: "delete", Caller: client, Continuation: c}, asking, encodeAsking)
		if err != nil {
			t.Fatal(err)
		}
		c.After = 10 * s
		got := waitFor(t, tasks, c, client, byID(r.ID))
		if d := time.Since(r.Started); d != 2*s {
			t.Errorf("the question after %v", d)
		}
		exactly(t, "the question", got, r.ID, `{"resultType":"input_required","inputRequests":{"1.ok":{"method":"elicitation/create"}}}`)
		got, err = waitTool(t.Context(), c, tasks, client, byID(r.ID), map[string]json.RawMessage{"1.ok": json.RawMessage(`"yes"`)})
		if err != nil {
			t.Fatal(err)
		}
		if said(got) == "" || got["isError"] == true {
			t.Errorf("%v", got)
		}
		exactly(t, "the result", waitFor(t, tasks, c, client, byID(r.ID)), r.ID, `{"resultType":"complete","content":[{"type":"text","text":"\"yes\""}]}`)
	})
}
