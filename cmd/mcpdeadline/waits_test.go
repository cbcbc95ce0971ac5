package main

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
)

// A server that ends is started again and initialised as before. Requests in flight are answered, and the host learns
// that lists may have changed.
func TestServerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := connect(t)
		h.answered("1", "logging/setLevel", `{"level":"debug"}`)
		h.answered("2", "resources/subscribe", `{"uri":"x:y"}`)
		before := h.call("3", "pid", `{}`)
		hanging, asking, other := h.start("4", "hang", `{}`, ""), h.start("5", "ask", `{}`, ""), h.ask("6", "no/answer", `{}`)
		eventually(t, "the question", func() bool { return len(h.got("elicitation/create")) > 0 })
		for _, w := range []wire{h.call("7", "exit", `{}`), h.await(hanging, "hang"), h.await(asking, "ask")} {
			want := "the server ended: exit status 5\nIts stderr ends with:\nevil: started\ngoodbye\nIt is being restarted. The call was not repeated, and may have had an effect."
			if !w.Result.IsError || w.text() != want {
				t.Error(w.raw)
			}
		}
		if w := h.await(other, "no/answer"); w.Error == nil || !strings.HasPrefix(w.Error.Message, "the server ended: ") {
			t.Error(w.raw)
		}
		eventually(t, "word of the lists", func() bool { return len(h.got("list_changed")) == 2 })
		if after := h.call("8", "pid", `{}`); before.text() == after.text() || after.Result.IsError {
			t.Errorf("%s and %s", before.raw, after.raw)
		}
		if got := h.got("mcpdeadline"); got != nil { // the host has nothing to do with it
			t.Errorf("%q", got)
		}
		if d := cmp.Diff("initialize notifications/initialized logging/setLevel resources/subscribe tools/call tools/call", h.call("9", "seen", `{}`).text()); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]string{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"the server ended","requestId":1}}`}, h.got("notifications/cancelled")); d != "" {
			t.Error(d)
		}
		// The new server's first question has the id of the old one's. The answer to that one comes late, and is not
		// taken for this one's.
		asking = h.start("10", "ask", `{}`, "")
		eventually(t, "another question", func() bool { return len(h.got("elicitation/create")) == 2 })
		h.send(`{"jsonrpc":"2.0","id":1,"result":{"action":"old"}}`)
		question := h.got("elicitation/create")[1]
		id, _, _ := strings.Cut(strings.SplitN(question, `"id":`, 2)[1], `,`)
		h.send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"new"}}`)
		if w := h.await(asking, "ask"); w.text() != `{"action":"new"}` {
			t.Errorf("%s\n%s", question, w.raw)
		}
	})
}

// What comes while the server is being restarted reaches the next run once, and a call that is cancelled meanwhile never
// does.
func TestBetweenServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startProxy(t, []string{"EVIL_START=8s"}, evilArgs(t)...).initialized()
		h.answered("1", "resources/subscribe", `{"uri":"x:old"}`)
		h.call("2", "exit", `{}`)
		h.call("2", "exit", `{}`) // then no run has begun yet when the next messages come
		level, subscribe := h.ask("3", "logging/setLevel", `{"level":"debug"}`), h.ask("4", "resources/subscribe", `{"uri":"x:new"}`)
		h.start("5", "exit", `{}`, "")
		h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
		h.await(level, "setLevel")
		h.await(subscribe, "subscribe")
		if w := h.call("6", "seen", `{}`); w.text() != "initialize notifications/initialized resources/subscribe logging/setLevel resources/subscribe tools/call" {
			t.Error(w.raw)
		}
	})
}

// SPEC 16.8: what a host sends while its server is being started again waits within a bound in bytes; then the host
// waits. Neither the ends of calls nor that of the proxy do.
func TestHeldBytes(t *testing.T) {
	const starting, calls = 20 * time.Second, 20
	for _, tc := range []struct {
		name, total string
		then        func(*client)
		took        time.Duration
		answer      string
	}{
		{"the server has started", "1m", func(*client) {}, starting, "run 2"},
		{"the calls have ended", "5s", func(*client) {}, 5 * time.Second, "wall-clock limit of 5s"},
		{"the proxy ends", "1m", func(h *client) { h.stop() }, 0, "shutting down"},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			serve := script(func(p *virtual, m *jsonrpc.Message) bool {
				if strings.Contains(string(m.Params), `"exit"`) {
					p.Exit(1)
				}
				return false
			})
			vm := &virtualMachine{most: most, program: func(p *virtual) {
				if p.run > 1 {
					p.Sleep(starting)
				}
				serve(p)
			}}
			h := vm.host(t, "-total", tc.total, "-idle", "0", "-grace", "0s", "-keep-alive", "0", "--", "server").initialized()
			h.call("0", "exit", `{}`)
			begun := time.Since(h.begun)
			var sent atomic.Int64
			go func() {
				for i := range calls {
					if _, err := fmt.Fprintf(h.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t","arguments":{"text":"%s"}}}`+"\n", i+1, strings.Repeat("x", 64<<10)); err != nil {
						return
					}
					sent.Add(1)
				}
			}()
			synctest.Wait()
			if n := sent.Load(); n < most/4>>16 || n > most/4>>16+2 { // one is being read, and the pipe holds another
				t.Errorf("%d messages wait", n)
			}
			tc.then(h)
			if tc.took == 0 {
				<-h.ended
			} else {
				eventually(t, "all answers", func() bool { return len(h.got(tc.answer)) == calls })
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			for i, line := range h.lines {
				if strings.Contains(line, `"id":1,`) && (h.at[i]-begun != tc.took || !strings.Contains(line, tc.answer)) {
					t.Errorf("after %v: %.200s", h.at[i]-begun, line)
				}
			}
			if took := h.at[len(h.at)-1] - begun; took > starting {
				t.Errorf("the last call has ended after %v", took)
			}
		})
	}
}

// SPEC 16.4: a host that pings a server which does one thing at a time does not end it for a call that has its limits,
// nor while the proxy finds out whether it is alive. Where nothing but the host's pings finds out that a server hangs, and
// if nothing is open, only the server answers.
func TestPings(t *testing.T) {
	for _, tc := range []struct {
		name                    string
		flags                   []string
		before, during, inDoubt bool // whether the proxy answers
	}{
		{"a call with limits", []string{"-total", "3s", "-ping", "10m"}, false, true, true},
		{"a server that is never killed", []string{"-total", "3s", "-ping", "0"}, false, true, false},
		{"a call without limits", []string{"-total", "0", "-ping", "10m"}, false, false, false},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			h := startProxy(t, []string{"EVIL_RUDE=1"}, append(append(tc.flags, "-idle", "0", "-grace", "1s", "-alive", "progress"), evilArgs(t)...)...).initialized()
			ping := func(id string, want bool) {
				t.Helper()
				c := h.ask(id, "ping", `{}`)
				if synctest.Wait(); len(c) > 0 != want {
					t.Errorf("answered: %v", len(c) > 0)
				}
			}
			ping("1", tc.before)
			h.start("2", "deaf", `{}`, "")
			synctest.Wait()
			ping("3", tc.during)
			time.Sleep(10 * time.Second)
			ping("4", tc.inDoubt)
		})
	}
}

// A call that is cancelled while it waits for a server in doubt never reaches that.
func TestCancelledInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if runtime.GOOS != "linux" {
			t.Skip("the processor is not seen there")
		}
		h := connect(t, "-tool", "busy:total=500ms")
		h.call("1", "busy", `{"ms":12000}`) // until the next two have been sent
		h.start("2", "exit", `{}`, "")
		h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		if w := h.call("3", "echo", `{"text":"x"}`); w.text() != "x" {
			t.Error(w.raw)
		}
	})
}

// SPEC 16.7: a server that closes its stdout and lives fails what waits for it at once, and is started again.
func TestClosedStdout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := connect(t)
		begun := time.Now()
		other := h.ask("1", "no/answer", `{}`)
		for _, text := range []string{h.call("2", "shut", `{}`).text(), h.await(other, "no/answer").raw} {
			if !strings.Contains(text, "it has closed its stdout") {
				t.Error(text)
			}
		}
		if took := time.Since(begun); took != server.UnheardLimit {
			t.Error(took)
		}
		if w := h.call("3", "echo", `{"text":"again"}`); w.text() != "again" {
			t.Error(w.raw)
		}
	})
}

// SPEC 16.7, 3.23: requests that wait for a server that cannot be started, calls too, are answered with the reason. Nobody
// has aborted them.
func TestCallsOfAServerThatCannotBeStarted(t *testing.T) {
	for _, tc := range []struct {
		name  string
		heard bool // the first run has said something before it ended
		why   string
	}{
		{"never", false, "cannot start the server: exit status 3"},
		{"again", true, "cannot start the server: no such file"},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			asked := 0
			vm := &virtualMachine{most: most, fails: func(run int) error {
				if run > 1 {
					return errors.New("no such file")
				}
				return nil
			}}
			vm.program = script(func(p *virtual, m *jsonrpc.Message) bool {
				if m.Method != "tools/call" {
					return false
				}
				if asked++; tc.heard || asked == 2 {
					p.Exit(3)
				}
				return true
			})
			h := vm.host(t, "-total", "1h", "-idle", "0", "--", "server")
			if tc.heard {
				h.initialized().call("1", "end", `{}`)
			}
			first, second, list := h.start("2", "a", `{}`, ""), h.start("3", "b", `{}`, ""), h.ask("4", "tools/list", `{}`)
			for _, answer := range []<-chan wire{first, second, list} {
				if w := h.await(answer, "what waits"); !strings.Contains(w.raw, tc.why) || strings.Contains(w.raw, "aborted") {
					t.Error(w.raw)
				}
			}
			<-h.ended
		})
	}
}

// A shutdown says how many calls have no answer, and counts each of them once.
func TestCallsWithoutAnAnswer(t *testing.T) { // SPEC 3.11
	synctest.Test(t, func(t *testing.T) {
		h := connect(t, "-grace", "1h", "-total", "0")
		h.start("1", "hang", `{}`, "")
		h.start("2", "deaf", `{}`, "")
		synctest.Wait()
		h.stop()
		<-h.ended
		if !strings.Contains(h.stderr(), "calls without an answer: 2:") {
			t.Error(h.stderr())
		}
	})
}

// A server is started again, and gets requests, although the host does not read what an earlier server has sent.
// SPEC 16.8.
func TestRestartWhileTheHostDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		note := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + strings.Repeat("x", 50_000) + `"}}`
		h := connectScript(t, func(p *virtual, m *jsonrpc.Message) bool {
			if strings.Contains(string(m.Params), `"flood"`) {
				go func() {
					p.Sleep(time.Minute)
					p.Exit(5)
				}()
				for range most / len(note) {
					p.say(note)
				}
			}
			return false
		}).initialized()
		h.out.pause(true)
		h.start("1", "flood", `{}`, "")
		time.Sleep(5 * time.Minute)
		last := h.start("2", "a", `{}`, "")
		time.Sleep(time.Minute)
		h.out.pause(false)
		if got := h.await(last, "a"); got.text() != "run 2" {
			t.Errorf("%s\n%s", got.raw, h.stderr())
		}
	})
}
