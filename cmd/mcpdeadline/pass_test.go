package main

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// Messages pass unchanged, to the byte.
func TestPassesUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
			if tc.send != "" {
				h.send(tc.send)
			}
			if lines := h.got(""); lines[len(lines)-1] != tc.want {
				t.Errorf("%s: %s", tc.name, lines[len(lines)-1])
			}
		}
	})
}

// The bound holds to the byte and in both directions: a request or an answer that is too long becomes an error
// without waiting for a limit, and anything else is dropped.
func TestTooLongByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 2000
		vm := newMachine(nil)
		vm.most = most
		h := vm.host(t, append([]string{"-idle", "0", "-total", "0"}, evilArgs(t)...)...).initialized()
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
		for _, tc := range []struct{ name, send, want string }{
			{"an answer at the bound", long(most), answer(strings.Repeat("x", most-len(answer(""))))},
			{"an answer", long(most + 1), failure("the server sent a message of 2001 bytes, which exceeds the limit of 2000")},
			{"a line of the server", call("endless", `{"megabytes":1}`), answer("done")},
			{"a request at the bound", pad(most), answer("x")},
			{"a request", pad(most + 1), failure("message of 2001 bytes exceeds the limit of 2000")},
			{"a line of the host", strings.Repeat("x", most+1) + "\n" + call("echo", `{"text":"there"}`), answer("there")},
		} {
			h.send(tc.send)
			if got := h.got(""); got[len(got)-1] != tc.want {
				t.Fatalf("%s: %.300s", tc.name, got[len(got)-1])
			}
		}
	})
}
