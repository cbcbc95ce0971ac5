package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// SPEC 16.9: what the proxy reads is what the server reads. A message in which readers may find different values for
// a key is refused, and a key with escapes is the key that it says.
func TestExactKeys(t *testing.T) {
	for _, tc := range []struct{ name, line string }{
		{"a method in another case", `{"jsonrpc":"2.0","id":1,"method":"tools/call","Method":"ping","params":{"name":"slow"}}`},
		{"the same before it", `{"jsonrpc":"2.0","id":1,"METHOD":"ping","method":"tools/call","params":{"name":"slow"}}`},
		{"a call behind a ping", `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"slow"}}`},
		{"only another case", `{"jsonrpc":"2.0","id":1,"Method":"tools/call","params":{"name":"slow"}}`},
		{"a method twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping","params":{"name":"slow"}}`},
		{"the second with an escape", `{"jsonrpc":"2.0","id":1,"method":"tools/call","\u006dethod":"ping","params":{"name":"slow"}}`},
		{"another case with an escape", `{"jsonrpc":"2.0","id":1,"method":"tools/call","\u004dethod":"ping","params":{"name":"slow"}}`},
		{"a letter that folds", `{"jsonrpc":"2.0","id":1,"method":"tools/call","param\u017f":{"name":"build"},"params":{"name":"slow"}}`},
		{"a name in another case", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","Name":"build"}}`},
		{"a name twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","name":"build"}}`},
		{"only a name in another case", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"NAME":"build"}}`},
		{"params twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"},"params":{"name":"build"}}`},
		{"params in another case", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"},"Params":{"name":"build"}}`},
		{"an id in another case", `{"jsonrpc":"2.0","id":1,"ID":2,"method":"tools/call","params":{"name":"slow"}}`},
		{"an id twice", `{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"slow"}}`},
		{"a token twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","_meta":{"progressToken":1,"progressToken":2}}}`},
		{"a token in another case", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","_meta":{"ProgressToken":2}}}`},
		{"_meta in another case", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","_META":{"progressToken":2}}}`},
		{"_meta of any request", `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"slow","_meta":{},"_Meta":{}}}`},
		{"a task in another case", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","Task":{}}}`},
		{"a task id twice", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"a","TaskId":"b"}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := new(scripted)
				h := connectScripted(t, server, "-total", "1s", "-tool", "build:total=1h").initialized()
				answer := make(chan *message, 1)
				h.mu.Lock()
				h.waits["1"] = answer
				h.mu.Unlock()
				h.send(tc.line)
				synctest.Wait()
				select {
				case m := <-answer:
					if m.Error == nil || !strings.Contains(string(m.Error), "-32600") || !strings.Contains(string(m.Error), "the key") {
						t.Errorf("%s", m.raw)
					}
				default:
					t.Error("no answer")
				}
				if seen := server.state().seen; len(seen) != 2 {
					t.Errorf("the server got %q", seen)
				}
			})
		})
	}
	// Nor does what is no message reach the server, which may take it for one.
	const call = `"id":1,"method":"tools/call","params":{"name":"slow"}}`
	for name, line := range map[string]string{
		"a number as the version":      `{"jsonrpc":2.0,` + call,
		"an object as the version":     `{"jsonrpc":{},` + call,
		"an array as the method":       `{"jsonrpc":"2.0","id":1,"method":["tools/call"],"params":{"name":"slow"}}`,
		"no version, and another case": `{"jsonrpc":2.0,"id":1,"Method":"tools/call","params":{"name":"slow"}}`,
		"a comma":                      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"},}`,
		"a comment":                    `{"jsonrpc":"2.0","id":1,/**/"method":"tools/call","params":{"name":"slow"}}`,
		"another message before it":    `{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0",` + call,
		"a separator before it":        `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\u2028" + `{"jsonrpc":"2.0",` + call,
		"a control character":          `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","x":"` + "\x01" + `"}}`,
		"a deep value":                 `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","x":` + strings.Repeat("[", 1e5) + strings.Repeat("]", 1e5) + `}}`,
		"the id at the end":            `{"jsonrpc":2.0,"x":"` + strings.Repeat("x", 2*headKept) + `","method":"tools/call","params":{"name":"slow"},"id":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := new(scripted)
				h := connectScripted(t, server, "-total", "1s").initialized()
				answer := make(chan *message, 1)
				h.mu.Lock()
				h.waits["1"] = answer
				h.mu.Unlock()
				h.send(line)
				synctest.Wait()
				select {
				case m := <-answer:
					if m.Error == nil {
						t.Errorf("%s", m.raw)
					}
				default:
					t.Error("no answer")
				}
				if seen := server.state().seen; len(seen) != 2 {
					t.Errorf("the server got %q", seen)
				}
			})
		})
	}
	for _, line := range []string{
		"\ufeff" + `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}`,
		`{"jsonrpc":"2.0","id":1,"\u006dethod":"tools/call","params":{"name":"slow"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools\/call","params":{"\u006eame":"slow"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\u0073low","arguments":{"Name":"build","name":"x","name":"y"},"x":{"Name":1,"name":2}}}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			server := &scripted{serve: func(_ *scriptedRun, m *message) bool { return m.Method == "tools/call" }}
			h := connectScripted(t, server, "-total", "1s", "-grace", "0", "-tool", "build:total=1h").initialized()
			answer := make(chan *message, 1)
			h.mu.Lock()
			h.waits["1"] = answer
			h.mu.Unlock()
			begun := time.Now()
			h.send(line)
			m := <-answer
			if took := time.Since(begun); took < time.Second || took > 3*time.Second || !strings.Contains(string(m.raw), "limit of 1s") {
				t.Errorf("%s: after %v: %s", line, took, m.raw)
			}
		})
	}
}
