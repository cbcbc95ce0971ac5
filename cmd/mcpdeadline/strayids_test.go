package main

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A lockedBuffer is a log that a test reads.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// SPEC 8.11: over stdio an id that differs only in its type belongs to the request that it names, what is no answer
// fails the request at once, and an answer that belongs to no request is logged.
func TestAnswersOverStdio(t *testing.T) {
	const content = `{"content":[{"type":"text","text":"done"}]}`
	for _, tc := range []struct {
		name, id string
		says     string // %s is the id without quotes
		want     string // in the answer, "" for none before the limit
		log      string
	}{
		{"a string for a number", `1`, `{"jsonrpc":"2.0","id":"%s","result":` + content + `}`, "done", ""},
		{"a number for a string", `"1"`, `{"jsonrpc":"2.0","id":%s,"result":` + content + `}`, "done", ""},
		{"an error with a string", `1`, `{"jsonrpc":"2.0","id":"%s","error":{"code":-32000,"message":"broken"}}`, "broken", ""},
		{"a batch of one", `1`, `[{"jsonrpc":"2.0","id":%s,"result":` + content + `}]`, "done", ""},
		{"a batch with a string", `1`, `[{"jsonrpc":"2.0","method":"notifications/message","params":{}},{"jsonrpc":"2.0","id":"%s","result":` + content + `}]`, "done", ""},
		{"a batch that is none", `1`, `[{"jsonrpc":"2.0"},{"jsonrpc":"2.0","id":%s}]`, `neither a result nor an error`, ""},
		{"a byte order mark", `1`, "\ufeff" + `{"jsonrpc":"2.0","id":%s,"result":` + content + `}`, "done", ""},
		{"neither", `1`, `{"jsonrpc":"2.0","id":%s}`, "neither a result nor an error", ""},
		{"neither, a string", `1`, `{"jsonrpc":"2.0","id":"%s"}`, "neither a result nor an error", ""},
		{"no version", `1`, `{"id":%s,"result":{}}`, "neither a result nor an error", ""},
		{"a text as the result", `1`, `{"jsonrpc":"2.0","id":%s,"result":"ok"}`, "neither a result nor an error", ""},
		{"a null", `1`, `{"jsonrpc":"2.0","id":%s,"result":null}`, "neither a result nor an error", ""},
		{"a text as the error", `1`, `{"jsonrpc":"2.0","id":%s,"error":"no"}`, "neither a result nor an error", ""},
		{"a null beside the result", `1`, `{"jsonrpc":"2.0","id":%s,"result":` + content + `,"error":null}`, "done", ""},
		{"keys in another case", `1`, `{"jsonrpc":"2.0","id":%s,"Result":` + content + `}`, "neither a result nor an error", ""},
		{"an id twice", `1`, `{"jsonrpc":"2.0","id":%[1]s,"id":2,"result":` + content + `}`, "neither a result nor an error", ""},
		{"another id", `1`, `{"jsonrpc":"2.0","id":77,"result":` + content + `}`, "", `belongs to no request`},
		{"an empty id", `1`, `{"jsonrpc":"2.0","id":"","error":{"code":-32000,"message":"broken"}}`, "", `belongs to no request`},
		{"an id of null", `1`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}`, "", `belongs to no request`},
	} {
		for _, method := range []string{"tools/call", "prompts/get", "initialize"} {
			t.Run(tc.name+", "+method, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					line := tc.says
					if strings.Contains(line, "%") {
						line = fmt.Sprintf(line, strings.Trim(tc.id, `"`))
					}
					server := &scripted{serve: func(r *scriptedRun, m *message) bool {
						if string(m.ID) != tc.id {
							return false
						}
						r.say(line)
						return true
					}}
					log := new(lockedBuffer)
					server.log = log
					h := connectScripted(t, server, "-total", "1m")
					if method != "initialize" {
						h.initialized()
					}
					begun := time.Now()
					answer := h.ask(tc.id, method, `{"name":"a"}`)
					synctest.Wait()
					select {
					case m := <-answer:
						if tc.want == "" || !strings.Contains(string(m.raw), tc.want) || string(m.ID) != tc.id {
							t.Errorf("%s", m.raw)
						}
					default:
						if tc.want != "" {
							t.Error("no answer")
						}
					}
					if took := time.Since(begun); took > 0 {
						t.Errorf("after %v", took)
					}
					if !strings.Contains(log.String(), tc.log) || tc.log == "" && strings.Contains(log.String(), "belongs to no") {
						t.Errorf("log: %s", log)
					}
				})
			})
		}
	}
}

// SPEC 8.11: the same holds for what names a request or a token: progress, cancellations, and answers to questions.
func TestOtherTypesOfIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan string, 1)
		cancelled := make(chan string, 1)
		server := &scripted{serve: func(r *scriptedRun, m *message) bool {
			switch {
			case m.isResponse():
				asked <- string(m.raw)
			case m.Method == "notifications/cancelled":
				cancelled <- string(m.raw)
			case strings.Contains(string(m.Params), `"hang"`):
			case strings.Contains(string(m.Params), `"ask"`):
				r.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"5","progress":1}}`)
				r.say(`{"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{}}`)
			default:
				return false
			}
			return true
		}}
		h := connectScripted(t, server).initialized()
		h.ask("1", "tools/call", `{"name":"ask","_meta":{"progressToken":5}}`)
		synctest.Wait()
		h.send(`{"jsonrpc":"2.0","id":"9","result":{"action":"accept"}}`)
		if got := <-asked; !strings.Contains(got, `"id":9`) {
			t.Error(got)
		}
		h.mu.Lock()
		for _, m := range h.got {
			if m.Method == "notifications/progress" && !strings.Contains(string(m.raw), `"progressToken":5`) {
				t.Errorf("%s", m.raw)
			}
		}
		if len(h.got) != 2 {
			t.Errorf("%d messages", len(h.got))
		}
		h.mu.Unlock()
		h.ask("2", "tools/call", `{"name":"hang"}`)
		h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"2"}}`)
		if got := <-cancelled; !strings.Contains(got, `"requestId":2`) {
			t.Error(got)
		}
	})
}
