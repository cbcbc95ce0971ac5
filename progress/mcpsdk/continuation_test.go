package mcpsdk_test

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
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

type indexed struct {
	Files int `json:"files"`
}

// continuing is a server whose calls are continued after a while. Its tool "index" ends when the test
// says to, by gate.
func continuing(soft time.Duration, opts ...mcpsdk.InstallOption) (s *mcp.Server, gate chan struct{}, ended chan error) {
	s = newServer()
	gate, ended = make(chan struct{}), make(chan error, 10)
	mcp.AddTool(s, &mcp.Tool{Name: "index"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, indexed, error) {
		progress.Report(ctx, progress.Update{Progress: 3, Total: 10, Message: "main.go"})
		select {
		case <-gate:
		case <-ctx.Done():
			ended <- context.Cause(ctx)
		}
		return nil, indexed{10}, nil
	})
	opts = append([]mcpsdk.InstallOption{mcpsdk.WithContinuation(soft), mcpsdk.WithInterval(10 * ms)}, opts...)
	mcpsdk.Install(s, &policy.Policy{Default: &timeout.Config{Total: 10 * time.Minute}}, opts...)
	return s, gate, ended
}

// continuedID checks that a result says that the call is still running, and returns its id.
func continuedID(t testing.TB, res *mcp.CallToolResult, tool string) string {
	t.Helper()
	m, _ := res.Meta[task.ContinuationKey].(map[string]any)
	id, _ := m["id"].(string)
	text := strings.Join(texts(res), "\n")
	if res.IsError || id == "" || m["tool"] != tool || !strings.HasPrefix(text, "Still running after ") ||
		!strings.HasSuffix(text, fmt.Sprintf("\nCall %s with {\"id\": %q} to wait for the result.", tool, id)) {
		t.Fatalf("%v %s", res.Meta, text)
	}
	return id
}

func wait(t testing.TB, cs *mcp.ClientSession, args map[string]any) *mcp.CallToolResult {
	t.Helper()
	res, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "wait_for_result", Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// waitLong waits as often as it takes.
func waitLong(t testing.TB, cs *mcp.ClientSession, args map[string]any) *mcp.CallToolResult {
	t.Helper()
	for {
		if res := wait(t, cs, args); res.Meta[task.ContinuationKey] == nil {
			return res
		}
	}
}

// SPEC 12.1, 12.2, 12.4: on every transport, for clients that know nothing of it.
func TestContinuation(t *testing.T) {
	t.Parallel()
	for name, connect := range links {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, gate, ended := continuing(50 * ms)
			cs := connect(t, s, nil)
			id := continuedID(t, call(t, cs, "index", "t"), "wait_for_result")
			if again := continuedID(t, wait(t, cs, map[string]any{"id": id}), "wait_for_result"); again != id+".2" {
				t.Errorf("%s has become %s", id, again)
			}
			gate <- struct{}{}
			res := waitLong(t, cs, map[string]any{"id": id})
			if d := cmp.Diff(map[string]any{"files": 10.0}, res.StructuredContent); d != "" || res.IsError || texts(res)[0] != `{"files":10}` {
				t.Error(texts(res), d)
			}
			// SPEC 12.3: it can be fetched again.
			if d := cmp.Diff(texts(res), texts(waitLong(t, cs, map[string]any{"id": id}))); d != "" {
				t.Error(d)
			}

			id = continuedID(t, call(t, cs, "index", nil), "wait_for_result")
			res = waitLong(t, cs, map[string]any{"id": id, "cancel": true})
			if o := outcome(res); !res.IsError || o["kind"] != "aborted" || o["exitCode"] != 130.0 {
				t.Error(texts(res), o)
			}
			if got := <-ended; !errors.Is(got, task.ErrCancelled) {
				t.Error(got)
			}

			for _, args := range []map[string]any{{"id": "nobody's"}, {}} {
				if res := wait(t, cs, args); !res.IsError || !strings.Contains(texts(res)[0], "id") {
					t.Error(texts(res))
				}
			}
			if res := call(t, cs, "noop", nil); texts(res)[0] != "done" {
				t.Error(texts(res))
			}

			tools, err := cs.ListTools(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, tool := range tools.Tools {
				if tool.Name == "index" && tool.OutputSchema != nil {
					t.Error("a call that is not over has no structured content, but the schema wants it")
				}
				found = found || tool.Name == "wait_for_result"
			}
			if !found {
				t.Error("no wait_for_result")
			}
		})
	}
}

// SPEC 12.1, 12.2: never early, and the progress of the waiting is the call's.
func TestContinuationInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, gate, _ := continuing(45*time.Second, mcpsdk.WithWaitTool("more"))
		h := new(heard)
		cs := inMemory(protocol2025)(t, s, h.options())
		start := time.Now()
		res := call(t, cs, "index", "first")
		id := continuedID(t, res, "more")
		if want := fmt.Sprintf("Still running after 45s.\nmain.go 3 of 10\nCall more with {\"id\": %q} to wait for the result.", id); texts(res)[0] != want {
			t.Errorf("%s; want %s", texts(res), want)
		}
		if took := time.Since(start); took != 45*time.Second {
			t.Errorf("answered after %v", took)
		}
		time.AfterFunc(20*time.Second, func() { gate <- struct{}{} })
		p := &mcp.CallToolParams{Name: "more", Arguments: map[string]any{"id": id}}
		p.SetProgressToken("second")
		res, err := cs.CallTool(t.Context(), p)
		if err != nil || res.IsError || time.Since(start) != 65*time.Second {
			t.Errorf("%v, %v after %v", res, err, time.Since(start))
		}
		synctest.Wait()
		var tokens []any
		for _, n := range h.list() {
			tokens = append(tokens, n.ProgressToken)
			if n.Message != "main.go" {
				t.Error(n)
			}
		}
		if d := cmp.Diff([]any{"first", "second"}, tokens); d != "" {
			t.Error(d)
		}
	})
}

// SPEC 12.3, 12.5: a continuation belongs to its session, and ends with it.
func TestContinuationOfASession(t *testing.T) {
	for _, name := range []string{"in-memory 2025-11-25", "in-memory 2026-07-28", "SSE", "HTTP"} {
		t.Run(name, func(t *testing.T) {
			s, _, ended := continuing(20 * ms)
			cs := links[name](t, s, nil)
			other := links[name](t, s, nil)
			id := continuedID(t, call(t, cs, "index", nil), "wait_for_result")
			if res := wait(t, other, map[string]any{"id": id}); !res.IsError || !strings.Contains(texts(res)[0], "another session") {
				t.Error(texts(res))
			}
			if err := cs.Close(); err != nil {
				t.Error(err)
			}
			select {
			case got := <-ended:
				if !errors.Is(got, toolcall.ErrSessionEnded) {
					t.Error(got)
				}
			case <-time.After(slack):
				t.Error("the tool runs on")
			}
		})
	}
}

// Where tasks are on too, a client that can take them gets them, and the calls of others are
// continued.
func TestContinuationBesideTasks(t *testing.T) {
	s := newTaskServer(t, mcpsdk.WithContinuation(30*ms))
	p := peers["HTTP 2026-07-28, a server per request"](t, s)
	p.handle(p.call("gated", nil))
	p.plain = true
	res := p.call("gated", nil)
	id, _ := meta(res, task.ContinuationKey)["id"].(string)
	if res["resultType"] != "complete" || id == "" {
		t.Fatal(res)
	}
	go func() { s.gate <- struct{}{}; s.gate <- struct{}{} }()
	rest := func(res object) object {
		for meta(res, task.ContinuationKey)["id"] != nil {
			res = p.call("wait_for_result", object{"arguments": object{"id": meta(res, task.ContinuationKey)["id"]}})
		}
		return res
	}
	res = rest(res)
	if firstText(res) != "through" || res["resultType"] != "complete" {
		t.Error(res)
	}
	// A tool that asks is waited for with the answers.
	res = rest(p.call("asks", nil)) // on a busy machine it is continued, too
	if _, asked := res["inputRequests"].(object)["q"]; !asked || res["resultType"] != "input_required" {
		t.Error(res)
	}
}

// A stop of what is continued is what it would have been.
func TestContinuationStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _ := continuing(45 * time.Second)
		cs := inMemory(protocol2025)(t, s, nil)
		start := time.Now()
		id := continuedID(t, call(t, cs, "index", nil), "wait_for_result")
		var res *mcp.CallToolResult
		calls := 0
		for res = wait(t, cs, map[string]any{"id": id}); res.Meta[task.ContinuationKey] != nil; calls++ {
			res = wait(t, cs, map[string]any{"id": id})
		}
		if o := outcome(res); o["kind"] != "total" || time.Since(start) != 10*time.Minute || calls != 12 {
			t.Errorf("%v, %v after %v, %d calls", texts(res), o, time.Since(start), calls)
		}
		data, err := json.Marshal(res.StructuredContent)
		if string(data) != `{"files":10}` || err != nil {
			t.Errorf("partial output: %s, %v", data, err)
		}
	})
}
