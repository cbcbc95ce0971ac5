package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// SPEC 18.4: a call is answered before its host gives up, with what there is, and never later than without a budget. One
// that cannot be read is ignored, and logged once.
func TestBudget(t *testing.T) {
	const s, m = time.Second, time.Minute
	for _, tc := range []struct {
		name   string
		flags  string
		budget string
		token  bool          // the host asks for progress
		every  time.Duration // the server reports
		after  time.Duration // of the first answer
		kind   string        // of the outcome, or continued
		log    int           // lines that say what is ignored
	}{
		{"none", "", "", false, 0, 2 * m, "idle", 0},
		{"left", "", `{"leftMs":60000}`, false, 0, 50 * s, "total", 0},
		{"longer than the total", "-total 1m", `{"leftMs":600000}`, false, 0, m, "total", 0},
		{"no limits", "-total 0 -idle 0", `{"leftMs":12000}`, false, 0, 10 * s, "total", 0},
		{"silent", "", `{"leftMs":1800000,"idleMs":30000}`, true, 0, 25 * s, "idle", 0},
		{"silent, with a grace, and a server that answers no pings", "-grace 7s -ping 0", `{"leftMs":1800000,"idleMs":30000}`, true, 0, 25*s + 2400*time.Millisecond, "idle", 0},
		{"silent, unheard", "", `{"leftMs":1800000,"idleMs":30000}`, false, 5 * s, 25 * s, "total", 0},
		{"not silent", "", `{"leftMs":60000,"idleMs":30000}`, true, 5 * s, 50 * s, "total", 0},
		{"continued", "-soft 5m", `{"leftMs":60000}`, false, 0, 50 * s, "continued", 0},
		{"continued before", "-soft 20s", `{"leftMs":60000}`, false, 0, 20 * s, "continued", 0},
		{"silent, continued", "-soft 5m", `{"leftMs":1800000,"idleMs":30000}`, true, 0, 25 * s, "continued", 0},
		{"zero", "-idle 30s", `{"leftMs":0,"idleMs":0}`, false, 0, 30 * s, "idle", 0},
		{"null", "-idle 30s", `null`, false, 0, 30 * s, "idle", 0},
		{"negative", "-idle 30s", `{"leftMs":-1}`, false, 0, 30 * s, "idle", 1},
		{"a text", "-idle 30s", `{"leftMs":"1000"}`, false, 0, 30 * s, "idle", 1},
		{"no object", "-idle 30s", `1000`, false, 0, 30 * s, "idle", 1},
		{"given twice", "-idle 30s", `{"leftMs":1,"leftMs":2}`, false, 0, 30 * s, "idle", 1},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			h := connectScript(t, func(p *virtual, m *jsonrpc.Message) bool {
				if m.Method != "tools/call" {
					return m.Method == "notifications/cancelled" || m.Method != "initialize" && strings.Contains(tc.flags, "-ping 0")
				}
				if tc.every > 0 {
					go func() {
						for n := 1; ; n++ {
							p.Sleep(tc.every)
							p.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, m.Fields().Meta.ProgressToken, n))
						}
					}()
				}
				return true
			}, append([]string{"-alive", "progress", "-grace", "0"}, strings.Fields(tc.flags)...)...).initialized()
			for _, id := range []string{"1", "2"} {
				var meta []string
				if tc.budget != "" {
					meta = append(meta, `"io.github.tooldeadline/budget":`+tc.budget)
				}
				if tc.token {
					meta = append(meta, `"progressToken":`+id)
				}
				begun := time.Now()
				w := h.await(h.ask(id, "tools/call", `{"name":"a","arguments":{},"_meta":{`+strings.Join(meta, ",")+`}}`), "tools/call")
				kind, _, _ := strings.Cut(w.outcome(), " ")
				if strings.HasPrefix(w.text(), "Still running") {
					kind = "continued"
				}
				if after := time.Since(begun); after != tc.after || kind != tc.kind {
					t.Errorf("after %v: %s, want after %v %s", after, w.raw, tc.after, tc.kind)
				}
			}
			if got := strings.Count(h.stderr(), "budget that the host sends is ignored"); got != tc.log {
				t.Errorf("%d lines, want %d: %s", got, tc.log, h.stderr())
			}
		})
	}
}

// SPEC 18.4: a request to the server says what is left at that time, and the limit of silence only where nothing but progress counts.
func TestBudgetForTheServer(t *testing.T) {
	for _, tc := range []struct {
		name, flags, meta string
		want              []string // of two calls, of which the first ends the server; it takes 5 s to start again
	}{
		{"the preset", "", "", []string{`{"leftMs":1800000}`, `{"leftMs":1795000}`}},
		{"progress", "-alive progress -total 10m", "", []string{`{"idleMs":120000,"leftMs":600000}`, `{"idleMs":120000,"leftMs":595000}`}},
		{"no limits", "-total 0 -idle 0", "", []string{"", ""}},
		{"the host's", "", `"io.github.tooldeadline/budget":{"leftMs":60000,"idleMs":30000},"x":1`, []string{`{"leftMs":25000}`, `{"leftMs":20000}`}},
		{"the host's, and a call that runs on", "-soft 5m", `"io.github.tooldeadline/budget":{"leftMs":60000}`, []string{`{"leftMs":1800000}`, `{"leftMs":1795000}`}},
		{"the host's, without limits", "-total 0 -idle 0 -soft 5m", `"io.github.tooldeadline/budget":{"leftMs":60000}`, []string{`{}`, `{}`}},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			var got []string
			serve := script(func(p *virtual, m *jsonrpc.Message) bool {
				if m.Method == "tools/call" {
					got = append(got, string(m.Fields().Meta.Budget))
					if p.run == 1 {
						p.Exit(1)
					}
				}
				return false
			})
			vm := &virtualMachine{most: most, program: func(p *virtual) {
				if p.run > 1 {
					p.Sleep(5 * time.Second)
				}
				serve(p)
			}}
			h := vm.host(t, append(strings.Fields(tc.flags), "--", "server")...).initialized()
			for _, id := range []string{"1", "2"} {
				h.await(h.ask(id, "tools/call", `{"name":"a","_meta":{`+tc.meta+`}}`), "tools/call")
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// A host hears of a call three times within the silence that it bears, and as often as by hand. SPEC 18.4, 18.5.
func TestKeepAliveWithinBudget(t *testing.T) {
	for _, tc := range []struct {
		name, flags, client, budget string
		took                        time.Duration
		want                        int
	}{
		{"a third of 10 s", "", "t", `{"idleMs":12000}`, 9 * time.Second, 2},
		{"10 s, though it bears more", "", "t", `{"idleMs":60000}`, 25 * time.Second, 2},
		{"by hand", "-keep-alive 4s", "t", `{"idleMs":60000}`, 9 * time.Second, 2},
		{"by hand, and a host that is recognised", "-keep-alive 4s", "codex-mcp-client", `{}`, 9 * time.Second, 2},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			h := connectScript(t, func(p *virtual, m *jsonrpc.Message) bool {
				if m.Method == "tools/call" {
					go func() {
						p.Sleep(tc.took)
						p.answer(m, textResult("done", ""))
					}()
				}
				return m.Method == "tools/call"
			}, strings.Fields(tc.flags)...)
			h.answered(`"init"`, "initialize", initializeOf(tc.client, "1"))
			h.await(h.ask("1", "tools/call", `{"name":"a","_meta":{"progressToken":1,"io.github.tooldeadline/budget":`+tc.budget+`}}`), "tools/call")
			if told := h.got("notifications/progress"); len(told) != tc.want {
				t.Errorf("%q", told)
			}
		})
	}
}

// SPEC 18.2: what a server says on its socket counts from the beginning of a call.
func TestHeartbeatAtTheBeginning(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		h := connectScript(t, func(p *virtual, m *jsonrpc.Message) bool {
			if m.Method == "tools/call" {
				go func() {
					p.Sleep(900 * time.Millisecond)
					p.Beat()
					p.Sleep(7900 * time.Millisecond)
					p.answer(m, textResult("done", ""))
				}()
			}
			return m.Method == "tools/call"
		}, "-idle", "8s", "-alive", "notify").initialized()
		if w := h.await(h.ask("1", "tools/call", `{"name":"a"}`), "tools/call"); w.text() != "done" {
			t.Error(w.raw)
		}
	})
}
