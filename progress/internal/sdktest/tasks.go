package sdktest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// becomesTask tests SPEC 11.1, 11.2, 11.3: a call that reaches its soft limit is answered with a handle at that
// instant, and runs on. Its result can be fetched more than once.
func becomesTask(t *testing.T, sdk SDK) {
	withTasks(t, sdk, nil, func(t *testing.T, p *Peer, w *workshop) {
		begun := time.Since(p.begun)
		m := p.task("work", object{"arguments": object{"what": "it"}}).wait()
		h := p.handle(m)
		id := h["taskId"]
		// A client of protocol Old that requests a task gets it at once.
		if want := map[string]time.Duration{New: 30 * s}[p.Version]; m.Took != want || h["status"] != "working" || h["ttl"] != map[string]any{Old: 60000.0}[p.Version] || len(id.(string)) < 26 {
			t.Errorf("%s after %v", m.Raw, m.Took)
		}
		time.Sleep(s)
		if got := p.get(id); got["status"] != "working" || !strings.HasPrefix(fmt.Sprint(got["statusMessage"]), "main.go 3 of 10") {
			t.Error(got)
		}
		time.Sleep(begun + 59*s - time.Since(p.begun))
		if got := p.get(id); got["status"] != "working" {
			t.Error(got)
		}
		time.Sleep(begun + time.Minute - time.Since(p.begun))
		synctest.Wait()
		for range 2 {
			if got := p.get(id); got["status"] != "completed" {
				t.Error(got)
			}
			res, fault := p.result(id)
			if fault != nil || texts(res)[0] != "done it" || p.Version == Old && metaOf(res, task.RelatedKey)["taskId"] != id {
				t.Error(res, fault)
			}
		}
		if d := cmp.Diff([]string{"it"}, w.calls); d != "" {
			t.Error(d)
		}
	})
}

// plainCalls tests SPEC 11.1, 11.2: a call is answered with its result if it ends before its soft limit, if its tool
// never becomes a task, or if its client has not declared tasks.
func plainCalls(t *testing.T, sdk SDK) {
	withTasks(t, sdk, nil, func(t *testing.T, p *Peer, _ *workshop) {
		for _, tc := range []struct {
			tool, want string
			declare    bool
		}{{"quick", "quick", true}, {"never", "done <nil>", true}, {"work", "done <nil>", false}, {"now", "done <nil>", false}} {
			p.declare = tc.declare
			if m := p.call(tc.tool, "t", nil).wait(); m.Error != nil || texts(m.Result)[0] != tc.want || m.Result["resultType"] != map[string]any{New: "complete"}[p.Version] {
				t.Errorf("%s: %s", tc.tool, m.Raw)
			}
		}
		p.declare = true
		if p.Version == Old {
			if m := p.task("never", nil).wait(); m.Error == nil || m.Error.Code != -32601 || m.Error.Message != `tool "never" cannot be called as a task` {
				t.Errorf("%s", m.Raw)
			}
		}
	})
}

// taskEnds tests SPEC 7.7, 11.2, 11.6: the result and the status of a task for each way in which its tool can end.
func taskEnds(t *testing.T, sdk SDK) {
	withTasks(t, sdk, nil, func(t *testing.T, p *Peer, _ *workshop) {
		for _, tc := range []struct {
			tool        string
			texts       []string
			outcome     any
			status, old string
		}{
			{"fails", []string{"disk is full"}, nil, "completed", "failed"},
			{"breaks", []string{"panic: broken"}, nil, "completed", "failed"},
			{"idle", []string{"No progress for 40s (idle timeout). Tool should call heartbeat() during long work.\nlast: main.go 3 of 10", "two of three files"}, "idle", "completed", "failed"},
			{"only", []string{"done <nil>"}, nil, "completed", "completed"},
		} {
			h := p.handle(p.task(tc.tool, nil).wait())
			res, fault := p.result(h["taskId"])
			if d := cmp.Diff(tc.texts, texts(res)); d != "" || fault != nil || outcome(res)["kind"] != tc.outcome {
				t.Error(tc.tool, d, fault, outcome(res))
			}
			want := tc.status
			if p.Version == Old {
				want = tc.old
			}
			if got := p.get(h["taskId"]); got["status"] != want || want == "failed" && !strings.HasPrefix(fmt.Sprint(got["statusMessage"]), tc.texts[0]) {
				t.Error(tc.tool, got)
			}
		}
		// The SDK decides how a tool's own error is answered.
		id := p.Task("errs")
		res, fault := p.result(id)
		if sdk.ErrorsAreResults {
			if fault != nil || res["isError"] != true || texts(res)[0] != "no such file" {
				t.Error(res, fault)
			}
		} else if got := p.get(id); fault["code"] != -32603.0 || fault["message"] != "no such file" || got["status"] != "failed" {
			t.Error(res, fault, got)
		}
	})
}

// taskCancel tests SPEC 11.5: tasks/cancel aborts the tool, and the status is cancelled at once and stays so.
func taskCancel(t *testing.T, sdk SDK) {
	withTasks(t, sdk, nil, func(t *testing.T, p *Peer, w *workshop) {
		id := p.Task("now")
		time.Sleep(s)
		res := p.must("tasks/cancel", object{"taskId": id})
		if p.Version == Old && res["status"] != "cancelled" {
			t.Error(res)
		}
		synctest.Wait()
		if len(w.ended) != 1 || !errors.Is(w.ended[0], task.ErrCancelled) {
			t.Error(w.ended)
		}
		again := p.Request("tasks/cancel", object{"taskId": id})
		if refused := again.Error != nil && again.Error.Code == -32602; refused != (p.Version == Old) {
			t.Errorf("%s", again.Raw)
		}
		if p.Version == Old { // tasks/result still returns the result of the aborted call
			res, fault := p.result(id)
			o := outcome(res)
			if d := cmp.Diff([]string{"Tool was aborted: the task was cancelled\nlast: main.go 3 of 10", "two of three files"}, texts(res)); d != "" || fault != nil ||
				res["isError"] != true || o["kind"] != "aborted" || o["exitCode"] != 130.0 {
				t.Error(d, fault, o)
			}
		}
		time.Sleep(50 * s) // less than its ttl
		if got := p.get(id); got["status"] != "cancelled" {
			t.Error(got)
		}
	})
}

// taskErrors tests SPEC 11.2: the errors for requests about tasks that are not valid.
func taskErrors(t *testing.T, sdk SDK) {
	withTasks(t, sdk, nil, func(t *testing.T, p *Peer, w *workshop) {
		id := p.Task("now")
		for _, tc := range []struct {
			method     string
			params     object
			undeclared bool
			code, old  int // the codes of the error, in the new protocol and in the old one; 0 means no error
		}{
			{"tasks/get", object{"taskId": "x"}, false, -32602, -32602},
			{"tasks/get", nil, false, -32602, -32602},
			{"tasks/result", object{"taskId": "x"}, false, -32601, -32602},
			{"tasks/update", object{"taskId": "x"}, false, -32602, -32601},
			{"tasks/cancel", object{"taskId": "x"}, false, -32602, -32602},
			{"tasks/list", nil, false, -32601, 0},
			{"tasks/nonsense", object{"taskId": "x"}, false, -32601, -32601},
			{"tasks/get", object{"taskId": id}, true, -32021, 0},
			{"tools/call", object{"name": "only", "arguments": object{}}, true, -32021, -32601},
		} {
			if tc.method == "tasks/nonsense" && !sdk.FaultStatus && p.Version == Old {
				continue // over HTTP the official SDK refuses the method without a JSON-RPC error
			}
			if tc.method == "tasks/list" && p.Stateless && p.Version == Old {
				tc.old = -32601
			}
			p.declare = !tc.undeclared
			x := p.start(tc.method, tc.params)
			m := x.wait()
			want, got := tc.code, 0
			if p.Version == Old {
				want = tc.old
			}
			if m != nil && m.Error != nil {
				got = m.Error.Code
			}
			if m == nil || got != want {
				t.Errorf("%s %v: %+v, want %d", tc.method, tc.params, m, want)
			} else if want == -32021 && !strings.Contains(string(m.Raw), `"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}`) {
				t.Errorf("%s", m.Raw)
			} else if tc.method == "tools/call" && want == -32601 && m.Error.Message != `tool "only" can only be called as a task` {
				t.Errorf("%s", m.Raw)
			}
			status := map[int]int{-32601: http.StatusNotFound}[want]
			if status == 0 {
				status = http.StatusBadRequest
			}
			if sdk.FaultStatus && p.http() && p.Version == New && x.Status != status {
				t.Errorf("%s %v: status %d, want %d", tc.method, tc.params, x.Status, status)
			}
		}
		p.declare = true
	})
}

// taskOfAnUnknownVersion tests that the negotiated version of the protocol decides about tasks, and not the version
// that the client requested.
func taskOfAnUnknownVersion(t *testing.T, sdk SDK) {
	bubble(t, func(t *testing.T) {
		var w workshop
		p := Dial(t, sdk.NewServer(w.config()), Way{Name: "lines", Version: "2099-01-01", open: (*Peer).overLines})
		m := p.call("now", nil, object{"task": object{}}).wait()
		h, _ := m.Result["task"].(object)
		if h["taskId"] == nil {
			t.Fatal(m)
		}
		time.Sleep(time.Hour)
		_ = w.tasks.Close()
	})
}

// tasksDeclared tests SPEC 11.2, 10.1: the declarations about tasks in the capabilities and in the list of tools.
func tasksDeclared(t *testing.T, sdk SDK) {
	withTasks(t, sdk, func(c *Config) { c.Declared = true }, func(t *testing.T, p *Peer, _ *workshop) {
		capabilities := p.declared()
		extensions, _ := capabilities["extensions"].(object)
		if got, ok := extensions[task.ExtensionID]; ok != (p.Version == New) || ok && !cmp.Equal(got, any(object{})) {
			t.Error(capabilities)
		}
		old := object{"cancel": object{}, "requests": object{"tools": object{"call": object{}}}}
		if !p.Stateless {
			old["list"] = object{}
		}
		if d := cmp.Diff(map[string]any{Old: old}[p.Version], capabilities["tasks"]); d != "" {
			t.Error(d)
		}
		support, soft := object{}, object{}
		for name, tool := range p.tools() {
			if e, ok := tool["execution"].(object); ok {
				support[name] = e["taskSupport"]
			}
			if ms, ok := metaOf(tool, policy.DeclarationKey)["softMs"]; ok {
				soft[name] = ms
			}
		}
		wantSupport := object{"work": "optional", "now": "optional", "only": "required", "fails": "optional", "breaks": "optional", "errs": "optional", "steps": "optional", "quick": "optional",
			"idle": "optional", "asks": "optional", "elicits": "optional", "late": "optional"}
		if p.Version == New {
			wantSupport = object{}
		}
		if d := cmp.Diff(wantSupport, support); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(object{"work": 30e3, "now": 0.0, "only": 30e3, "fails": 0.0, "breaks": 0.0, "errs": 0.0, "steps": 30e3, "quick": 30e3, "idle": 30e3, "asks": 0.0, "elicits": 0.0, "late": 90e3}, soft); d != "" {
			t.Error(d)
		}
	})
}
