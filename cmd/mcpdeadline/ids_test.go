package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/calls"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// An id is the same however it is spelled: the other side may spell it differently.
func TestIDsWrittenAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := connect(t)
		for _, id := range []string{`1.0`, `1e2`, `"caf\u00e9"`, `"a\/b"`, `"a<b"`, `2`, `"x"`} {
			for method, want := range map[string]string{
				"tools/call": `"result":{"content":[{"type":"text","text":"done"}]}`, "x/anew": `"result":{}`,
			} {
				if w := h.answered(id, method, `{"name":"anew"}`); !jsonrpc.Same(string(w.ID), id) || !strings.Contains(w.raw, want) {
					t.Errorf("%s %s: %s", id, method, w.raw)
				}
			}
		}
		// The same holds for the id of the server's question, which the server gets back as it wrote it.
		answer := h.start("3", "ask", `{"as":"\"caf\\u00e9\""}`, "")
		eventually(t, "the question", func() bool { return len(h.got("elicitation/create")) > 0 })
		h.send(`{"jsonrpc":"2.0","id":"café","result":{"action":"accept"}}`)
		if w := h.await(answer, "ask"); w.text() != `{"action":"accept"}` {
			t.Error(w.raw)
		}
		// SPEC 7.4: nothing is sent after the answer, however the server writes the token.
		h.await(h.start("4", "echo", `{"text":"x"}`, `"caf\u00e9"`), "echo")
		h.call("5", "late", `{"token":"\"café\""}`)
		if got := h.got("notifications/progress"); got != nil {
			t.Errorf("%q", got)
		}
	})
}

// A second request with an id in use is refused, and the first is not affected.
func TestDuplicateID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := connect(t)
		answers := h.start("1.0", "sleep", `{"ms":700}`, "")
		h.send(`{"jsonrpc":"2.0","id":1,"method":"x/anew","params":{}}`)
		if w := h.await(answers, "the second"); !strings.Contains(w.raw, `"code":-32600`) {
			t.Error(w.raw)
		}
		if w := h.await(answers, "the first"); w.text() != "done" {
			t.Error(w.raw)
		}
		if w := h.call("1", "echo", `{"text":"again"}`); w.text() != "again" { // it is free
			t.Error(w.raw)
		}
	})
}

// A progress token that is neither a text nor a number, and an id that is no JSON, end nothing but what they are of.
func TestOddTokens(t *testing.T) {
	for _, token := range []string{`{"a":1}`, `[1]`, `true`, `null`} {
		bubble(t, token, func(t *testing.T) {
			h := connectScript(t, func(p *virtual, m *jsonrpc.Message) bool {
				if m.Method == "tools/call" {
					p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + tokenOf(m) + `,"progress":1}}`)
				}
				return m.Method == "tools/call"
			}, "-total", "10s", "-grace", "0", "-keep-alive", "1s").initialized()
			begun := time.Now()
			w := h.await(h.start("1", "a", `{}`, token), "the call")
			if took := time.Since(begun); took != 10*time.Second || !strings.Contains(w.raw, "limit of 10s") {
				t.Errorf("after %v: %s", took, w.raw)
			}
			h.nothingMore() // it has not asked in a way that can be answered
		})
	}
	for _, id := range []string{`007`, `-01`, `"\q"`, `"\u12"`, "\"\t\""} {
		if got := jsonrpc.IDOf([]byte(`{"result":"`), []byte(`","id":`+id+`}`)); got != nil && !json.Valid(got) {
			t.Errorf("%s: %s", id, got)
		}
	}
}

// tokenOf returns the progress token of a request.
func tokenOf(m *jsonrpc.Message) string { return string(m.Fields().Meta.ProgressToken) }

// SPEC 8.11: over stdio an id that differs only in its type belongs to the request that it names, what is no answer
// fails the request at once, and an answer that belongs to no request is logged.
func TestAnswersOverStdio(t *testing.T) {
	const content, neither, none = `{"content":[{"type":"text","text":"done"}]}`, "neither a result nor an error", `belongs to no request`
	for _, tc := range []struct {
		name, id string
		says     string // %s is the id without quotes
		want     string // in the answer, "" for none before the limit
		log      string
	}{
		{"a string for a number", `1`, `{"jsonrpc":"2.0","id":"%s","result":` + content + `}`, "done", ""},
		{"a number for a string", `"1"`, `{"jsonrpc":"2.0","id":%s,"result":` + content + `}`, "done", ""},
		{"an error with a string", `1`, `{"jsonrpc":"2.0","id":"%s","error":{"code":-32000,"message":"broken"}}`, "broken", ""},
		{"a batch with a string", `1`, `[{"jsonrpc":"2.0","method":"notifications/message","params":{}},{"jsonrpc":"2.0","id":"%s","result":` + content + `}]`, "done", ""},
		{"a batch that is none", `1`, `[{"jsonrpc":"2.0"},{"jsonrpc":"2.0","id":%s}]`, neither, ""},
		{"a byte order mark", `1`, "\ufeff" + `{"jsonrpc":"2.0","id":%s,"result":` + content + `}`, "done", ""},
		{"neither", `1`, `{"jsonrpc":"2.0","id":%s}`, neither, ""},
		{"neither, a string", `1`, `{"jsonrpc":"2.0","id":"%s"}`, neither, ""},
		{"no version", `1`, `{"id":%s,"result":{}}`, neither, ""},
		{"a text as the result", `1`, `{"jsonrpc":"2.0","id":%s,"result":"ok"}`, neither, ""},
		{"a null beside the result", `1`, `{"jsonrpc":"2.0","id":%s,"result":` + content + `,"error":null}`, "done", ""},
		{"keys in another case", `1`, `{"jsonrpc":"2.0","id":%s,"Result":` + content + `}`, neither, ""},
		{"an id twice", `1`, `{"jsonrpc":"2.0","id":%[1]s,"id":2,"result":` + content + `}`, neither, ""},
		{"another id", `1`, `{"jsonrpc":"2.0","id":77,"result":` + content + `}`, "", none},
		{"twice", `1`, `{"jsonrpc":"2.0","id":%[1]s,"result":` + content + "}\n" + `{"jsonrpc":"2.0","id":%[1]s,"result":` + content + `}`, "done", none},
		{"an id in no UTF-8", "\"a\xff\xfeb\"", `{"jsonrpc":"2.0","id":"%s","result":` + content + `}`, "done", ""},
		{"an id of null", `1`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}`, "", none},
	} {
		for _, method := range []string{"tools/call", "prompts/get", "initialize"} {
			bubble(t, tc.name+", "+method, func(t *testing.T) {
				line := tc.says
				if strings.Contains(line, "%") {
					line = fmt.Sprintf(line, strings.Trim(tc.id, `"`))
				}
				h := connectScript(t, func(p *virtual, m *jsonrpc.Message) bool {
					if string(m.ID) == tc.id {
						p.say(line)
					}
					return string(m.ID) == tc.id
				}, "-total", "1m")
				if method != "initialize" {
					h.initialized()
				}
				answer := h.ask(tc.id, method, `{"name":"a"}`)
				synctest.Wait()
				select {
				case w := <-answer:
					if tc.want == "" || !strings.Contains(w.raw, tc.want) || string(w.ID) != tc.id {
						t.Errorf("%s", w.raw)
					}
				default:
					if tc.want != "" {
						t.Error("no answer")
					}
				}
				if log := h.stderr(); strings.Contains(log, none) != (tc.log != "") {
					t.Errorf("log: %s", log)
				}
			})
		}
	}
}

// SPEC 8.11: the id of a question is the server's own again when it is answered, in a later run too, where the host gets
// another one, whatever characters are in it.
func TestQuestionsOfALaterRun(t *testing.T) {
	for _, id := range []string{`5`, `1.50`, `"a"`, `"<\"\\>"`, "\"\x7f\U000e0001\u200b\"", `"run 2: 1"`, `""`} {
		bubble(t, id, func(t *testing.T) {
			got := make(chan string, 1)
			h := connectScript(t, func(p *virtual, m *jsonrpc.Message) bool {
				switch {
				case m.IsResponse():
					got <- string(m.ID)
				case strings.Contains(string(m.Params), `"end"`):
					p.Exit(0)
				case strings.Contains(string(m.Params), `"ask"`):
					p.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"elicitation/create","params":{}}`)
				default:
					return false
				}
				return true
			}).initialized()
			h.call("1", "end", `{}`)
			h.start("2", "ask", `{}`, "")
			synctest.Wait()
			for _, line := range h.got("elicitation/create") {
				m := jsonrpc.Parse([]byte(line))
				h.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{}}`)
			}
			synctest.Wait()
			select {
			case back := <-got:
				if back != id {
					t.Errorf("the server gets %s", back)
				}
			default:
				t.Errorf("no answer: %q", h.got("elicitation/create"))
			}
		})
	}
}

// SPEC 16.8: a server that asks a host which does not answer gets an error for each question above the bound, at once
// and in each run anew, and waits while it does not read the errors. A question that has ended makes room.
func TestQuestionsWithoutAnAnswer(t *testing.T) {
	const said = 5 * calls.MaxQuestions
	question := func(i int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d %s","method":"elicitation/create","params":{}}`, i, strings.Repeat("x", 1<<10))
	}
	synctest.Test(t, func(t *testing.T) {
		var sent, refused, answered atomic.Int64
		read := make(chan struct{})
		h := connectScript(t, func(p *virtual, m *jsonrpc.Message) bool {
			switch {
			case m.IsResponse() && m.Error != nil:
				refused.Add(1)
			case m.IsResponse():
				answered.Add(1)
			case strings.Contains(string(m.Params), `"flood"`):
				go func() {
					for i := range said {
						p.say(question(i))
						sent.Add(1)
					}
					p.answer(m, `{}`)
				}()
				<-read
			case strings.Contains(string(m.Params), `"ask"`):
				p.say(question(said))
				p.answer(m, `{}`)
			case strings.Contains(string(m.Params), `"withdraw"`):
				p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + string(jsonrpc.Parse([]byte(question(1))).ID) + `}}`)
				p.say(question(said + 1))
				p.answer(m, `{}`)
			case strings.Contains(string(m.Params), `"end"`):
				p.Exit(0)
			default:
				return false
			}
			return true
		}).initialized()
		counts := func(when string, asked, errors, answers int) {
			t.Helper()
			synctest.Wait()
			if n := len(h.got("elicitation/create")); n != asked || refused.Load() != int64(errors) || answered.Load() != int64(answers) {
				t.Errorf("%s: the host was asked %d questions, and the server got %d errors and %d answers, want %d, %d and %d",
					when, n, refused.Load(), answered.Load(), asked, errors, answers)
			}
		}
		flood := h.start("1", "flood", `{}`, "")
		synctest.Wait()
		if n := sent.Load(); n <= calls.MaxQuestions || n > calls.MaxQuestions+most/4>>10+100 {
			t.Errorf("the server has sent %d questions without reading", n)
		}
		close(read)
		<-flood
		counts("after the flood", calls.MaxQuestions, said-calls.MaxQuestions, 0)
		h.call("2", "ask", `{}`)
		counts("above the bound", calls.MaxQuestions, said-calls.MaxQuestions+1, 0)
		h.send(`{"jsonrpc":"2.0","id":` + string(jsonrpc.Parse([]byte(question(0))).ID) + `,"result":{}}`)
		h.call("3", "ask", `{}`)
		counts("after an answer", calls.MaxQuestions+1, said-calls.MaxQuestions+1, 1)
		h.call("4", "withdraw", `{}`)
		counts("after a cancellation", calls.MaxQuestions+2, said-calls.MaxQuestions+1, 1)
		h.call("5", "end", `{}`)
		h.call("6", "ask", `{}`)
		counts("in the next run", calls.MaxQuestions+3, said-calls.MaxQuestions+1, 1)
		if n := strings.Count(h.stderr(), "too many requests"); n != 1 {
			t.Errorf("logged %d times", n)
		}
	})
}

// A question of a run that ends before it is ready is cancelled at the host, as is that of any other run.
func TestQuestionsOfARunThatIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := connectScript(t, func(p *virtual, m *jsonrpc.Message) bool {
			switch {
			case p.run == 2 && m.Method == "initialize":
				p.say(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
				p.Exit(1)
			case strings.Contains(string(m.Params), `"end"`):
				p.Exit(0)
			default:
				return false
			}
			return true
		}).initialized()
		h.call("1", "end", `{}`)
		if w := h.call("2", "a", `{}`); !strings.Contains(w.raw, "run 3") {
			t.Errorf("%s", w.raw)
		}
		asked, cancelled := h.got("roots/list"), h.got("notifications/cancelled")
		if len(asked) != 1 || len(cancelled) != 1 || !strings.Contains(cancelled[0], `"requestId":"run 2: 1"`) {
			t.Errorf("asked %q, cancelled %q", asked, cancelled)
		}
	})
}

// SPEC 16.8: a question that a server asks twice under one id suspends no idle limit beyond its answer.
func TestQuestionAskedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := connectScript(t, func(p *virtual, m *jsonrpc.Message) bool {
			if m.Method != "tools/call" {
				return m.Method == "ping"
			}
			for range 2 {
				p.say(`{"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{}}`)
			}
			return true
		}, "-idle", "10s", "-total", "1h", "-grace", "0s").initialized()
		begun := time.Now()
		c := h.start("1", "a", `{}`, "")
		time.Sleep(time.Minute)
		h.send(`{"jsonrpc":"2.0","id":9,"result":{"action":"accept"}}`)
		if m := <-c; time.Since(begun) != 70*time.Second {
			t.Errorf("after %v: %s", time.Since(begun), m.raw)
		}
	})
}

// SPEC 8.11: the same holds for what names a request or a token: progress, cancellations, and answers to questions.
func TestOtherTypesOfIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan string, 10)
		h := connectScript(t, func(p *virtual, m *jsonrpc.Message) bool {
			switch {
			case m.IsResponse(), m.Method == "notifications/cancelled":
				got <- string(m.Raw)
			case strings.Contains(string(m.Params), `"hang"`):
			case strings.Contains(string(m.Params), `"ask"`):
				p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"5","progress":1}}`)
				p.say(`{"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{}}`)
			default:
				return false
			}
			return true
		}).initialized()
		h.start("1", "ask", `{}`, "5")
		synctest.Wait()
		h.send(`{"jsonrpc":"2.0","id":"9","result":{"action":"accept"}}`)
		if line := <-got; !strings.Contains(line, `"id":9`) {
			t.Error(line)
		}
		if n := len(h.got(`"progressToken":5`)); n != 1 {
			t.Errorf("%d reports", n)
		}
		h.start("2", "hang", `{}`, "")
		h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"2"}}`)
		if line := <-got; !strings.Contains(line, `"requestId":2`) {
			t.Error(line)
		}
	})
}

// SPEC 7.7: an id that JSON may spell otherwise is the same when the proxy answers, over HTTP too.
func TestAnswerOfTheProxyToAnOddID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newWebHost(t, &virtualMachine{program: script(func(_ *virtual, m *jsonrpc.Message) bool { return m.Method == "tools/call" })},
			"-total", "1s", "-grace", "0", "--", "server")
		defer h.w.End()
		one, _ := h.begin()
		if got := one.call(`"a<b"`, "a").Body.String(); !strings.Contains(got, "wall-clock limit of 1s") {
			t.Error(got)
		}
	})
}
