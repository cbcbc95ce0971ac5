package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Messages pass unchanged, to the byte.
func TestPassesUnchanged(t *testing.T) {
	t.Parallel()
	h := connect(t)
	for _, tc := range []struct{ name, send, want string }{
		{"an answer with fields of its own", "", `{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"logging":{}},"serverInfo":{"name":"evil","version":"1"},"x-unknown":{"kept":[1,2.50]}}}`},
		{"an unknown method", `{"jsonrpc":"2.0","id":1,"method":"x/echo","params":{"z":1e2,  "a":"é\u00e9"}}`, `{"jsonrpc":"2.0","id":1,"result":{"z":1e2,  "a":"é\u00e9"}}`},
		{"an error", `{"jsonrpc":"2.0","id":2,"method":"x/none"}`, `{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no such method","data":{"method":"x/none"}}}`},
		{"id 0", `{"jsonrpc":"2.0","id":0,"method":"ping"}`, `{"jsonrpc":"2.0","id":0,"result":{}}`},
		{"an empty id", `{"jsonrpc":"2.0","id":"","method":"ping"}`, `{"jsonrpc":"2.0","id":"","result":{}}`},
		{"a large id", `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, `{"jsonrpc":"2.0","id":9007199254740993,"result":{}}`},
		{"no JSON", `{"jsonrpc"`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}`},
		{"a batch", `[{"jsonrpc":"2.0","id":3,"method":"ping"}]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}`},
		{"a tool's result", `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"echo","arguments":{"text":"é"}}}`, `{"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"é"}]}}`},
		{"a tool's failure", `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"fail"}}`, `{"jsonrpc":"2.0","id":5,"result":{"content":[{"type":"text","text":"it did not work"}],"isError":true}}`},
		{"a tool's error", `{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"error"}}`, `{"jsonrpc":"2.0","id":6,"error":{"code":-32602,"message":"no such tool"}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.send != "" {
				h.send(tc.send)
			}
			eventually(t, tc.want, func() bool {
				for _, line := range h.got(tc.want) {
					if line == tc.want {
						return true
					}
				}
				return false
			})
		})
	}
}

// Progress passes unchanged, in order, and before the answer.
func TestPassesProgress(t *testing.T) {
	t.Parallel()
	h := connect(t)
	h.await(h.start("1", "progress", `{"ms":400}`, `"t"`), "progress")
	lines := h.got("")
	var want []string
	for i := 1; i <= len(lines)-2; i++ {
		want = append(want, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":%d,"total":1000,"message":"step %d","x":1}}`, i, i))
	}
	want = append(want, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}]}}`)
	if d := cmp.Diff(want, lines[1:]); d != "" || len(want) < 3 {
		t.Error(d)
	}
	// A host that does not ask for progress gets none.
	h.call("2", "progress", `{"ms":200}`)
	if got := h.got("mcpdeadline"); got != nil {
		t.Errorf("%q", got)
	}
}

// A question of the server reaches the host, the answer gets back, and the call is not idle meanwhile.
func TestPassesQuestions(t *testing.T) {
	t.Parallel()
	h := connect(t, "-idle", "3s")
	answer := h.start("1", "ask", `{}`, "")
	eventually(t, "the question", func() bool { return len(h.got("elicitation/create")) > 0 })
	h.call("2", "sleep", `{"ms":2000}`)
	h.call("3", "sleep", `{"ms":2000}`)
	h.send(`{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`)
	if w := h.await(answer, "ask"); w.text() != `{"action":"accept"}` || w.Result.IsError {
		t.Error(w.raw)
	}
	if got := h.got(`"elicitation/create"`); got[0] != `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"really?"}}` {
		t.Errorf("%q", got)
	}
}

// A call that the host cancels is cancelled at the server, and is not answered.
func TestPassesCancel(t *testing.T) { // SPEC 7.8
	t.Parallel()
	h := connect(t)
	h.start("1", "half", `{}`, "")
	h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"enough"}}`)
	h.await(h.ask("2", "no/method", `{}`), "another request")
	if w := h.call("3", "seen", `{}`); !strings.Contains(w.text(), "notifications/cancelled") {
		t.Error(w.raw)
	}
	if got := h.got(`"id":1`); got != nil {
		t.Errorf("%q", got)
	}
}

func TestManyCallsAtOnce(t *testing.T) {
	t.Parallel()
	h := connect(t)
	const n = 1000
	var calls sync.WaitGroup
	for i := range n {
		answer := h.start(fmt.Sprint(i), "sleep", `{"ms":500}`, fmt.Sprintf(`"t%d"`, i))
		calls.Go(func() {
			if w := h.await(answer, "sleep"); w.text() != "done" {
				t.Error(w.raw)
			}
		})
	}
	calls.Wait()
}

// A flood of messages passes, a flood on stderr may be dropped, and neither blocks anything else.
func TestFlood(t *testing.T) {
	t.Parallel()
	h := connect(t)
	const lines = 5000
	if w := h.call("1", "flood", fmt.Sprintf(`{"lines":%d}`, lines)); w.text() != "done" {
		t.Error(w.raw)
	}
	if n := len(h.got("notifications/message")); n != lines {
		t.Errorf("%d of %d messages", n, lines)
	}
	if w := h.call("2", "echo", `{"text":"there"}`); w.text() != "there" {
		t.Error(w.raw)
	}
}

// An endless line does not fill the memory, and an answer that is too long becomes an error.
func TestTooLong(t *testing.T) {
	t.Parallel()
	h := connect(t)
	if w := h.call("1", "endless", `{"megabytes":80}`); w.text() != "done" {
		t.Error(w.raw)
	}
	w := h.call("2", "long", fmt.Sprintf(`{"bytes":%d}`, maxMessage))
	if w.Error == nil || w.Error.Code != internalError || !strings.Contains(w.Error.Message, "exceeds the limit of 67108864") {
		t.Errorf("%.200s", w.raw)
	}
	if w := h.call("3", "long", `{"bytes":10000000}`); len(w.text()) != 10000000 {
		t.Errorf("%.200s", w.raw)
	}
	if !strings.Contains(h.stderr(), "exceeds the limit of") {
		t.Error("nothing is said")
	}
}
