package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
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
		{"no JSON, to the proxy", `{"jsonrpc"`, `{"error":{"code":-32700,"message":"unexpected end of JSON input"},"id":null,"jsonrpc":"2.0"}`},
		{"a batch", `[{"jsonrpc":"2.0","id":3,"method":"ping"}]`, `[{"jsonrpc":"2.0","id":3,"result":{}}]`},
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
	h.await(h.start("1", "progress", `{"ms":2000}`, `"t"`), "progress")
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
	h := connect(t, "-idle", "8s")
	answer := h.start("1", "ask", `{}`, "")
	eventually(t, "the question", func() bool { return len(h.got("elicitation/create")) > 0 })
	h.call("2", "sleep", `{"ms":5000}`)
	h.call("3", "sleep", `{"ms":5000}`)
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
	n := 2
	eventually(t, "the cancellation at the server", func() bool { // other requests may overtake it
		n++
		return strings.Contains(h.call(fmt.Sprintf(`"%d"`, n), "seen", `{}`).text(), "notifications/cancelled")
	})
	if got := h.got(`"id":1,`); got != nil {
		t.Errorf("%q", got)
	}
}

func TestManyCallsAtOnce(t *testing.T) {
	t.Parallel()
	h := connect(t)
	const n = 500
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
	const lines = 2000
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

// An answer that is too long is an error that says so, and the session goes on.
func TestTooLong(t *testing.T) {
	t.Parallel()
	h := connect(t)
	want := fmt.Sprintf("the server sent a message of %d bytes, which exceeds the limit of %d", len(`{"jsonrpc":"2.0","id":1,"result":`+textResult("", "")+`}`)+maxMessage, maxMessage)
	if w := h.call("1", "long", fmt.Sprintf(`{"bytes":%d}`, maxMessage)); w.Error == nil || w.Error.Code != internalError || w.Error.Message != want {
		t.Errorf("%.200s", w.raw)
	}
	if w := h.call("2", "long", `{"bytes":1000000}`); len(w.text()) != 1000000 {
		t.Errorf("%.200s", w.raw)
	}
	if said := h.stderr(); !strings.Contains(said, want) || strings.Count(said, "evil: started") != 1 {
		t.Error(said)
	}
}

// The bound holds to the byte and in both directions: a request or an answer that is too long becomes an error
// without waiting for a limit, and anything else is dropped.
func TestTooLongByOne(t *testing.T) {
	t.Parallel()
	const most = 2000
	p := newProxy(t, append([]string{"-idle", "0", "-total", "0"}, evilArgs(t)...))
	p.max = most
	p.dial = startCommand(p.command, p.max, p.stderr)
	in, host := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- serveStdio(context.Background(), p, in, out)
		out.Close()
	}()
	t.Cleanup(func() {
		host.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	call := func(tool, args string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `}}`
	}
	answer := func(text string) string { return `{"jsonrpc":"2.0","id":1,"result":` + textResult(text, "") + `}` }
	long := func(bytes int) string { return call("long", fmt.Sprintf(`{"bytes":%d}`, bytes-len(answer("")))) }
	pad := func(bytes int) string {
		return call("echo", `{"text":"x","pad":"`+strings.Repeat("y", bytes-len(call("echo", `{"text":"x","pad":""}`)))+`"}`)
	}
	failure := func(text string) string {
		return `{"error":{"code":-32603,"message":"` + text + `"},"id":1,"jsonrpc":"2.0"}`
	}
	lines := bufio.NewReader(answers)
	for _, tc := range []struct{ name, send, want string }{
		{"an answer at the bound", long(most), answer(strings.Repeat("x", most-len(answer(""))))},
		{"an answer", long(most + 1), failure("the server sent a message of 2001 bytes, which exceeds the limit of 2000")},
		{"a line of the server", call("endless", `{"megabytes":1}`), answer("done")},
		{"a request at the bound", pad(most), answer("x")},
		{"a request", pad(most + 1), failure("message of 2001 bytes exceeds the limit of 2000")},
		{"a line of the host", strings.Repeat("x", most+1) + "\n" + call("echo", `{"text":"there"}`), answer("there")},
	} {
		if _, err := io.WriteString(host, tc.send+"\n"); err != nil {
			t.Fatal(err)
		}
		got, err := lines.ReadString('\n')
		if err != nil || got != tc.want+"\n" {
			t.Fatalf("%s: %v, %.300s", tc.name, err, got)
		}
	}
}
