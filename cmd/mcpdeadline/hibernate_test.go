package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// SPEC 16.2: nobody has used the server for the time of -hibernate, to the nanosecond.
func TestFallsAsleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := new(scripted)
		h := connectScripted(t, server, "-hibernate", "10m").initialized()
		h.answered("1", "tools/call", `{"name":"a"}`)
		time.Sleep(5 * time.Minute)
		h.answered("2", "ping", `{}`) // no use
		h.answered("3", "tools/list", `{}`)
		time.Sleep(5*time.Minute - 1)
		synctest.Wait()
		if h.asleep() {
			t.Fatal("too early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if !h.asleep() || server.state().up != 0 {
			t.Fatal("it is awake")
		}
		// Pings and lists are answered for it, and what it would forget anyway is dropped.
		h.answered("4", "ping", `{}`)
		if m := h.answered(`"<5>"`, "tools/list", `{"_meta":{"progressToken":"p"}}`); !strings.Contains(string(m.Result), `"name":"a"`) {
			t.Errorf("%s", m.raw)
		}
		for _, method := range []string{"notifications/cancelled", "notifications/roots/list_changed", "notifications/progress"} {
			h.send(`{"jsonrpc":"2.0","method":"` + method + `","params":{"requestId":1}}`)
		}
		h.send(`{"jsonrpc":"2.0","id":99,"result":{}}`) // to a question that there was not
		time.Sleep(time.Hour)
		synctest.Wait()
		if !h.asleep() || server.state().runs != 1 {
			t.Fatal("it was woken")
		}
		if m := h.answered("6", "tools/call", `{"name":"a"}`); !strings.Contains(string(m.Result), "run 2") {
			t.Errorf("%s", m.raw)
		}
		synctest.Wait()
		if d := cmp.Diff([]string{"initialize", "notifications/initialized", "tools/call", "tools/list"}, server.state().seen); d != "" {
			t.Error(d)
		}
		if got := h.heard(); got != nil {
			t.Errorf("%q", got)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if !h.asleep() {
			t.Error("it does not fall asleep again")
		}
	})
}

// SPEC 16.2: lists that are not known, other requests, and what is no request wake the server.
func TestWakes(t *testing.T) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x:y"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"x:y"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"x/unknown"}`,
		`{"jsonrpc":"2.0","method":"notifications/x"}`,
		`{"jsonrpc":"2.0","id":1}`,
	} {
		t.Run(line, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := new(scripted)
				h := connectScripted(t, server, "-hibernate", "10m").initialized()
				h.answered("0", "tools/list", `{}`)
				time.Sleep(time.Hour)
				synctest.Wait()
				if !h.asleep() {
					t.Fatal("it is awake")
				}
				h.send(line)
				synctest.Wait()
				want := readMessage([]byte(line)).Method
				n := len(slices.DeleteFunc(slices.Clone(server.state().seen), func(m string) bool { return m != want }))
				if want == "tools/list" { // the proxy asks for it too
					n = server.state().got["1"]
				}
				if n != 1 {
					t.Errorf("%d of %q in %q", n, want, server.state().seen)
				}
			})
		})
	}
}

// SPEC 16.2: what is open keeps the server awake, and no longer than it is open.
func TestStaysAwake(t *testing.T) {
	silent := func(methods ...string) func(*scriptedRun, *message) bool {
		return func(_ *scriptedRun, m *message) bool { return slices.Contains(methods, m.Method) }
	}
	for _, tc := range []struct {
		name        string
		open, close string // what the host sends
		serve       func(*scriptedRun, *message) bool
	}{
		{"a call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, silent("tools/call")},
		{"a request without a limit", `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, silent("subscriptions/listen")},
		{"a subscription", `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"x:y"}}`,
			`{"jsonrpc":"2.0","id":2,"method":"resources/unsubscribe","params":{"uri":"x:y"}}`, nil},
		{"a question of the server", `{"jsonrpc":"2.0","id":1,"method":"x/ask"}`, `{"jsonrpc":"2.0","id":"q","result":{}}`,
			func(r *scriptedRun, m *message) bool {
				if m.Method == "x/ask" {
					r.say(`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`)
				}
				return false
			}},
		{"a question of a tool", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"q"}}`,
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"q","requestState":"s","inputResponses":{}}}`,
			func(r *scriptedRun, m *message) bool {
				if m.Method == "tools/call" && !strings.Contains(string(m.Params), "requestState") {
					r.answer(m, `{"resultType":"input_required","inputRequests":{"k":{}},"requestState":"s"}`)
					return true
				}
				return false
			}},
		{"a task of the server", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","task":{}}}`,
			`{"jsonrpc":"2.0","id":2,"method":"tasks/result","params":{"taskId":"7"}}`,
			func(r *scriptedRun, m *message) bool {
				if m.Method == "tools/call" {
					r.answer(m, `{"task":{"taskId":"7","status":"working"}}`)
					return true
				}
				return false
			}},
		{"a task of 2026-07-28", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`,
			`{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"7"}}`,
			func(r *scriptedRun, m *message) bool {
				switch m.Method {
				case "tools/call":
					r.answer(m, `{"resultType":"task","taskId":"7","status":"working"}`)
					return true
				case "tasks/get":
					r.answer(m, `{"taskId":"7","status":"completed","result":{"content":[]}}`)
					return true
				}
				return false
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &scripted{serve: tc.serve}
				h := connectScripted(t, server, "-hibernate", "10m", "-total", "0", "-idle", "0", "-grace", "1s").initialized()
				h.send(tc.open)
				time.Sleep(time.Hour + 3*time.Minute)
				synctest.Wait()
				if h.asleep() || server.state().runs != 1 {
					t.Fatal("it fell asleep")
				}
				h.send(tc.close)
				time.Sleep(10*time.Minute - 1)
				synctest.Wait()
				if h.asleep() {
					t.Error("it fell asleep too early")
				}
				time.Sleep(time.Minute) // the grace of the call that was cancelled
				synctest.Wait()
				if !h.asleep() {
					t.Errorf("it stays awake: %+v", &h.vigil)
				}
			})
		})
	}
}

// A host that has not finished the handshake, or said nothing yet, finds its server as it left it.
func TestHandshakeKeepsAwake(t *testing.T) { // SPEC 16.2
	synctest.Test(t, func(t *testing.T) {
		server := new(scripted)
		h := connectScripted(t, server, "-hibernate", "1m")
		time.Sleep(time.Hour)
		h.answered("1", "initialize", initialize)
		time.Sleep(time.Hour)
		h.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		h.answered("2", "logging/setLevel", `{"level":"debug"}`)
		if server.state().runs != 1 {
			t.Errorf("%d runs", server.state().runs)
		}
		time.Sleep(time.Hour)
		h.answered("3", "x/y", `{}`)
		synctest.Wait()
		if d := cmp.Diff([]string{"initialize", "notifications/initialized", "logging/setLevel", "x/y"}, server.state().seen); d != "" {
			t.Error(d)
		}
		// A host that begins anew is the one that initialises the server.
		time.Sleep(time.Hour)
		h.answered("4", "initialize", initialize)
		h.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		synctest.Wait()
		if d := cmp.Diff([]string{"initialize", "notifications/initialized"}, server.state().seen); d != "" || server.state().runs != 3 {
			t.Error(d, server.state().runs)
		}
	})
}

// SPEC 16.2: the host gets a notification of a list that is not as it was when the server fell asleep.
func TestListsAfterSleep(t *testing.T) {
	pages := func(sizes ...int) func(*scriptedRun, *message) bool { // how many resources each page has
		return func(r *scriptedRun, m *message) bool {
			if m.Method != "resources/list" {
				return false
			}
			_, cursor := wants(m)
			n := 0
			_, _ = fmt.Sscanf(cursor, "c%d", &n)
			first, items := 0, []string{}
			for _, size := range sizes[:n] {
				first += size
			}
			for i := range sizes[n] {
				items = append(items, fmt.Sprintf(`{"uri":"x:%d"}`, first+i))
			}
			next := ""
			if n+1 < len(sizes) {
				next = fmt.Sprintf(`,"nextCursor":"c%d"`, n+1)
			}
			r.answer(m, `{"resources":[`+strings.Join(items, ",")+`]`+next+`}`)
			return true
		}
	}
	for _, tc := range []struct {
		name   string
		asks   []string // lists that the host has asked for
		server *scripted
		told   []string
	}{
		{"the same", []string{"tools/list", "prompts/list"}, &scripted{}, nil},
		{"not asked for", nil, &scripted{tools: func(run int) string { return fmt.Sprintf(`[{"name":"%d"}]`, run) }}, nil},
		{"another order of keys", []string{"tools/list"}, &scripted{tools: func(run int) string {
			return []string{`[{"name":"a","title":"b"}]`, `[ {"title": "b", "name": "a"} ]`}[run-1]
		}}, nil},
		{"another", []string{"tools/list"}, &scripted{tools: func(run int) string { return fmt.Sprintf(`[{"name":"%d"}]`, run) }},
			[]string{"notifications/tools/list_changed"}},
		{"refused", []string{"tools/list"}, &scripted{serve: func(r *scriptedRun, m *message) bool {
			if m.Method != "tools/list" || r.run == 1 {
				return false
			}
			r.say(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32601,"message":"no"}}`)
			return true
		}}, []string{"notifications/tools/list_changed"}},
		{"in pages", []string{"resources/list"}, &scripted{serve: pages(2, 3, 1)}, nil},
		{"in other pages", []string{"resources/list"}, &scripted{serve: func(r *scriptedRun, m *message) bool {
			if r.run == 1 {
				return pages(2, 3)(r, m)
			}
			return pages(1, 1, 3)(r, m)
		}}, nil},
		{"in more pages", []string{"resources/list"}, &scripted{serve: func(r *scriptedRun, m *message) bool {
			if r.run == 1 {
				return pages(2, 3)(r, m)
			}
			return pages(2, 3, 1)(r, m)
		}}, []string{"notifications/resources/list_changed"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := tc.server
				h := connectScripted(t, server, "-hibernate", "10m").initialized()
				for i, list := range tc.asks {
					h.answered(fmt.Sprint("1", i), list, `{}`)
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				for i, list := range tc.asks { // each page is there
					cursor := ""
					for n := 0; n == 0 || cursor != ""; n++ {
						params := `{}`
						if cursor != "" {
							params = `{"cursor":"` + cursor + `"}`
						}
						m := h.answered(fmt.Sprintf("2%d%d", i, n), list, params)
						var next struct{ NextCursor string }
						_ = json.Unmarshal(m.Result, &next)
						cursor = next.NextCursor
					}
				}
				if !h.asleep() {
					t.Fatal("it is awake")
				}
				h.answered("3", "x/y", `{}`)
				synctest.Wait()
				if d := cmp.Diff(tc.told, h.heard()); d != "" || server.state().runs != 2 {
					t.Error(d, server.state().runs)
				}
			})
		})
	}
}

// SPEC 16.2: what is answered for a server that sleeps is as it was when it fell asleep, and not as it was
// when the host asked for it. A list that changes meanwhile is not answered.
func TestListsAreFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tools atomic.Value
		var says atomic.Bool
		tools.Store(`[{"name":"old"}]`)
		server := &scripted{
			tools: func(int) string { return tools.Load().(string) },
			falls: func() time.Duration { return 2 * time.Second },
			closes: func(r *scriptedRun) {
				if says.Load() {
					r.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				}
			},
		}
		h := connectScripted(t, server, "-hibernate", "10m").initialized()
		h.answered("1", "tools/list", `{}`)
		tools.Store(`[{"name":"new"}]`) // without a word
		time.Sleep(time.Hour)
		synctest.Wait()
		if m := h.answered("2", "tools/list", `{}`); !strings.Contains(string(m.Result), "new") || !h.asleep() {
			t.Errorf("%s", m.raw)
		}
		h.answered("3", "x/y", `{}`)
		says.Store(true)
		time.Sleep(time.Hour)
		synctest.Wait()
		h.answered("4", "tools/list", `{}`)
		if d := cmp.Diff([]string{"notifications/tools/list_changed"}, h.heard()); d != "" || server.state().runs != 3 {
			t.Error(d, server.state().runs)
		}
	})
}

// SPEC 16.2: a server that ends by itself as it falls asleep, asks something then, or does not answer the
// request for its lists, is no special case.
func TestEndsAsItFallsAsleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &scripted{closes: func(r *scriptedRun) {
			r.say(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
			r.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"goodbye"}}`)
			r.end()
		}}
		h := connectScripted(t, server, "-hibernate", "10m").initialized()
		for n := range 3 {
			time.Sleep(time.Hour)
			synctest.Wait()
			if !h.asleep() {
				t.Fatal("it is awake")
			}
			if m := h.answered(fmt.Sprint(n), "tools/call", `{"name":"a"}`); !strings.Contains(string(m.Result), fmt.Sprint("run ", n+2)) {
				t.Errorf("%s", m.raw)
			}
		}
		if d := cmp.Diff([]string{"notifications/message", "notifications/message", "notifications/message"}, h.heard()); d != "" {
			t.Error(d)
		}
	})
}

// A server that does not answer the request for its lists is busy.
func TestBusyServerStaysAwake(t *testing.T) { // SPEC 16.2
	synctest.Test(t, func(t *testing.T) {
		var busy atomic.Bool
		server := &scripted{serve: func(_ *scriptedRun, m *message) bool { return busy.Load() && m.Method == "tools/list" }}
		h := connectScripted(t, server, "-hibernate", "10m").initialized()
		h.answered("1", "tools/list", `{}`)
		busy.Store(true)
		time.Sleep(time.Hour)
		synctest.Wait()
		if h.asleep() {
			t.Error("it sleeps")
		}
		busy.Store(false)
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		if !h.asleep() {
			t.Error("it is awake")
		}
	})
}

// A server that is woken and asks before it answers initialize gets its answer.
func TestAsksAsItWakes(t *testing.T) { // SPEC 16.2
	synctest.Test(t, func(t *testing.T) {
		server := &scripted{serve: func(r *scriptedRun, m *message) bool {
			if r.run > 1 && m.Method == "initialize" {
				r.say(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
				answer := <-r.in
				if string(answer.ID) != "1" || answer.Result == nil {
					t.Errorf("%s", answer.raw)
				}
			}
			return false
		}}
		h := connectScripted(t, server, "-hibernate", "10m").initialized()
		time.Sleep(time.Hour)
		answer := h.ask("1", "x/y", `{}`)
		synctest.Wait()
		h.send(`{"jsonrpc":"2.0","id":"run 2: 1","result":{}}`)
		synctest.Wait()
		if len(answer) != 1 {
			t.Error("no answer")
		}
	})
}

// A server that cannot be started again refuses what has woken it.
func TestCannotWake(t *testing.T) { // SPEC 16.2
	synctest.Test(t, func(t *testing.T) {
		server := &scripted{starts: func(run int, _ func(string)) error {
			if run > 1 {
				return io.EOF
			}
			return nil
		}}
		h := connectScripted(t, server, "-hibernate", "10m").initialized()
		time.Sleep(time.Hour)
		if m := h.answered("1", "x/y", `{}`); m.Error == nil {
			t.Errorf("%s", m.raw)
		}
		if m := h.answered("2", "ping", `{}`); m.Error == nil {
			t.Errorf("%s", m.raw)
		}
		if err := <-h.ended; err == nil {
			t.Error("no error")
		}
		h.ended <- nil
	})
}

// The host may leave while its server sleeps or wakes.
func TestEndOfHostAsleep(t *testing.T) { // SPEC 16.2
	synctest.Test(t, func(t *testing.T) {
		h := connectScripted(t, new(scripted), "-hibernate", "10m").initialized()
		time.Sleep(time.Hour)
		h.end()
		if err := <-h.ended; err != nil {
			t.Error(err)
		}
		h.ended <- nil
	})
}
