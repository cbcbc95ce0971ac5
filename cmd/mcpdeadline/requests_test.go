package main

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// SPEC 16.9: what the proxy reads is what the server reads. A message in which readers may find different values for
// a key is refused, and so is what is no message; a key with escapes is the key that it says.
func TestExactKeys(t *testing.T) {
	const call = `"id":1,"method":"tools/call","params":{"name":"slow"}}`
	refused, passed := "refused", "limit of 1s"
	for _, tc := range []struct{ name, line, want string }{
		{"a method in another case", `{"jsonrpc":"2.0","id":1,"method":"tools/call","Method":"ping","params":{"name":"slow"}}`, "the key"},
		{"a call behind a ping", `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"slow"}}`, "the key"},
		{"only another case", `{"jsonrpc":"2.0","id":1,"Method":"tools/call","params":{"name":"slow"}}`, "the key"},
		{"a method twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping","params":{"name":"slow"}}`, "the key"},
		{"the second with an escape", `{"jsonrpc":"2.0","id":1,"method":"tools/call","\u006dethod":"ping","params":{"name":"slow"}}`, "the key"},
		{"a letter that folds", `{"jsonrpc":"2.0","id":1,"method":"tools/call","param\u017f":{"name":"build"},"params":{"name":"slow"}}`, "the key"},
		{"a name in another case", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","Name":"build"}}`, "the key"},
		{"only a name in another case", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"NAME":"build"}}`, "the key"},
		{"params twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"},"params":{"name":"build"}}`, "the key"},
		{"an id twice", `{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"slow"}}`, "the key"},
		{"a token twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","_meta":{"progressToken":1,"progressToken":2}}}`, "the key"},
		{"_meta of any request", `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"slow","_meta":{},"_Meta":{}}}`, "the key"},
		{"a task in another case", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","Task":{}}}`, "the key"},
		{"a task id twice", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"a","TaskId":"b"}}`, "the key"},

		{"a number as the version", `{"jsonrpc":2.0,` + call, refused},
		{"an array as the method", `{"jsonrpc":"2.0","id":1,"method":["tools/call"],"params":{"name":"slow"}}`, refused},
		{"no version, and another case", `{"jsonrpc":2.0,"id":1,"Method":"tools/call","params":{"name":"slow"}}`, refused},
		{"a comma", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"},}`, refused},
		{"another message before it", `{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0",` + call, refused},
		{"a control character", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","x":"` + "\x01" + `"}}`, refused},
		{"a deep value", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","x":` + strings.Repeat("[", 1e5) + strings.Repeat("]", 1e5) + `}}`, refused},
		{"the id at the end", `{"jsonrpc":2.0,"x":"` + strings.Repeat("x", 2*jsonrpc.HeadKept) + `","method":"tools/call","params":{"name":"slow"},"id":1}`, refused},

		{"a byte order mark", "\ufeff" + `{"jsonrpc":"2.0",` + call, passed},
		{"an escape", `{"jsonrpc":"2.0","id":1,"\u006dethod":"tools\/call","params":{"\u006eame":"\u0073low"}}`, passed},
		{"what is the tool's", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{"Name":"build","name":"x","name":"y"},"x":{"Name":1,"name":2}}}`, passed},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			h := connectScript(t, func(_ *virtual, m *jsonrpc.Message) bool { return m.Method == "tools/call" }, "-total", "1s", "-grace", "0", "-tool", "build:total=1h").initialized()
			answer := make(chan wire, 1)
			h.mu.Lock()
			h.waits["1"] = answer
			h.mu.Unlock()
			begun := time.Now()
			h.send(tc.line)
			w, took := h.await(answer, tc.name), time.Since(begun)
			if tc.want == passed {
				if took != time.Second || !strings.Contains(w.raw, passed) {
					t.Errorf("after %v: %s", took, w.raw)
				}
				return
			}
			if w.Error == nil || took != 0 || tc.want != refused && (w.Error.Code != jsonrpc.InvalidRequest || !strings.Contains(w.raw, tc.want)) {
				t.Errorf("after %v: %s", took, w.raw)
			}
			synctest.Wait()
			if seen := h.vm.seen(); len(seen) != 2 {
				t.Errorf("the server got %q", seen)
			}
		})
	}
}

// SPEC 16.8: every request that the proxy passes on has a limit, initialize too.
func TestEveryRequestHasALimit(t *testing.T) {
	for _, tc := range []struct {
		method, params string
		flags          []string
		after          time.Duration
		says           string
	}{
		{"initialize", initialize, nil, 2 * time.Minute, "No progress for 120s"},
		{"ping", `{}`, nil, 2 * time.Minute, "No progress for 120s"},
		{"tools/list", `{}`, []string{"-idle", "0", "-total", "5m"}, 5 * time.Minute, "limit of 300s"},
		{"prompts/get", `{"name":"x"}`, []string{"-idle", "0", "-total", "0"}, 2 * time.Minute, "No progress for 120s"},
		{"resources/read", `{"uri":"x:y"}`, []string{"-total", "1s"}, 30 * time.Second, "limit of 30s"}, // a server may have to be downloaded
		{"resources/subscribe", `{"uri":"x:y"}`, []string{"-idle", "40s"}, 40 * time.Second, "No progress for 40s"},
		{"tasks/result", `{"taskId":"t"}`, nil, 30 * time.Minute, "limit of 1800s"},
		{"x/unknown", `{}`, nil, 2 * time.Minute, "No progress for 120s"},
	} {
		bubble(t, tc.method, func(t *testing.T) {
			cancelled := 0
			var server *virtual
			h := connectScript(t, func(p *virtual, m *jsonrpc.Message) bool {
				if server = p; m.Method == "notifications/cancelled" {
					cancelled++
				}
				return string(m.ID) == "7"
			}, tc.flags...)
			if tc.method != "initialize" {
				h.initialized()
			}
			begun := time.Now()
			w := h.answered("7", tc.method, tc.params)
			if took := time.Since(begun); took != tc.after || w.Error == nil || !strings.Contains(w.Error.Message, tc.says) {
				t.Errorf("after %v: %s", took, w.raw)
			}
			synctest.Wait()
			if want := tc.method != "initialize"; want != (cancelled == 1) {
				t.Errorf("cancelled %d times", cancelled)
			}
			server.say(`{"jsonrpc":"2.0","id":7,"result":{}}`) // late
			h.nothingMore()
		})
	}
}

// Each request of a batch has its limits, and the host gets the answers in one array.
func TestBatch(t *testing.T) { // SPEC 16.8
	synctest.Test(t, func(t *testing.T) {
		h := connectScript(t, func(_ *virtual, m *jsonrpc.Message) bool { return strings.Contains(string(m.Params), `"hang"`) }, "-total", "1s", "-grace", "0").initialized()
		call := func(id int, tool string) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s"}}`, id, tool)
		}
		h.send(" [" + call(1, "hang") + "," + call(2, "a") + `,{"jsonrpc":"2.0","method":"notifications/x"},3,` + call(4, "hang") + `,{"jsonrpc":"2.0","id":5,"method":"ping","Method":"x"}]`)
		h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}`)
		time.Sleep(5 * time.Second)
		h.send("\t[]")
		got := h.got("")[1:] // after the answer to initialize
		if len(got) != 2 || !strings.Contains(got[1], `"no message"`) {
			t.Fatalf("%q", got)
		}
		for text, times := range map[string]int{"limit of 1s": 1, `"run 1"`: 1, `"no message"`: 1, `"jsonrpc"`: 4, `"id":4`: 0, "to be spelled": 1} {
			if strings.Count(got[0], text) != times {
				t.Errorf("%d times %q: %s", strings.Count(got[0], text), text, got[0])
			}
		}
		if seen := h.vm.seen(); strings.Join(seen[2:6], " ") != "tools/call tools/call notifications/x tools/call" {
			t.Errorf("%q", seen)
		}
	})
}

// A wait for a call that the host cancels gets no answer, and its batch does not wait for one.
func TestBatchWithCancelledWait(t *testing.T) { // SPEC 16.8
	synctest.Test(t, func(t *testing.T) {
		h := connectScript(t, func(_ *virtual, m *jsonrpc.Message) bool { return strings.Contains(string(m.Params), `"hang"`) }, "-soft", "1s").initialized()
		_, id, _ := strings.Cut(h.call("1", "hang", `{}`).text(), `{"id": "`)
		id, _, _ = strings.Cut(id, `"`)
		h.send(`[{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait_for_result","arguments":{"id":"` + id + `"}}},{"jsonrpc":"2.0","id":3,"method":"ping"}]`)
		synctest.Wait()
		h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		if got := h.got(`"id":3`); len(got) != 1 || strings.Contains(got[0], `"id":2`) {
			t.Errorf("%q", got)
		}
	})
}
