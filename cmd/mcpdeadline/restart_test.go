package main

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// A server that ends is started again and initialised as before. Requests in flight are answered, and
// the host learns that lists may have changed.
func TestServerEnds(t *testing.T) {
	for _, tool := range []string{"exit", "kill"} {
		bubble(t, tool, func(t *testing.T) {
			h := connect(t)
			h.await(h.ask("1", "logging/setLevel", `{"level":"debug"}`), "setLevel")
			h.await(h.ask("2", "resources/subscribe", `{"uri":"x:y"}`), "subscribe")
			before := h.call("3", "pid", `{}`)
			hanging := h.start("4", "hang", `{}`, "")
			asking := h.start("5", "ask", `{}`, "")
			other := h.ask("6", "no/answer", `{}`)
			eventually(t, "the question", func() bool { return len(h.got("elicitation/create")) > 0 })
			w := h.call("7", tool, `{}`)
			for _, w := range []wire{w, h.await(hanging, "hang"), h.await(asking, "ask")} {
				if !w.Result.IsError || !strings.HasPrefix(w.text(), "the server ended: ") ||
					!strings.Contains(w.text(), "The call was not repeated, and may have had an effect.") {
					t.Error(w.raw)
				}
			}
			if tool == "exit" && (!strings.Contains(w.text(), "exit status 5") || !strings.Contains(w.text(), "goodbye")) {
				t.Error(w.raw)
			}
			if w := h.await(other, "no/answer"); w.Error == nil || !strings.HasPrefix(w.Error.Message, "the server ended: ") {
				t.Error(w.raw)
			}
			eventually(t, "word of the lists", func() bool { return len(h.got("list_changed")) == 2 })
			after := h.call("8", "pid", `{}`)
			if before.text() == after.text() || after.text() == "" {
				t.Errorf("%s and %s", before.raw, after.raw)
			}
			// The host has nothing to do with it.
			if got := h.got("mcpdeadline"); got != nil {
				t.Errorf("%q", got)
			}
			seen := h.call("9", "seen", `{}`)
			if d := cmp.Diff("initialize notifications/initialized logging/setLevel resources/subscribe tools/call tools/call", seen.text()); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff([]string{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"the server ended","requestId":1}}`}, h.got("notifications/cancelled")); d != "" {
				t.Error(d)
			}

			// The new server's first question has the id of the old one's. The answer to that one
			// comes late, and is not taken for this one's.
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
}

// A call that comes while the server is being restarted is served by the next run, and a call that is
// cancelled meanwhile never reaches it.
func TestBetweenServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startProxy(t, []string{"EVIL_START=8s"}, evilArgs(t)...).initialized()
		h.call("1", "exit", `{}`)
		kept := h.start("2", "seen", `{}`, "")
		h.start("3", "exit", `{}`, "")
		h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
		if w := h.await(kept, "seen"); w.text() != "initialize notifications/initialized tools/call" {
			t.Error(w.raw)
		}
		if w := h.call("4", "echo", `{"text":"x"}`); w.text() != "x" {
			t.Error(w.raw)
		}
	})
}

// What holds for the rest of the session reaches a run once, also if the host sends it while the server is being
// restarted.
func TestHeldBetweenServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startProxy(t, []string{"EVIL_START=2s"}, evilArgs(t)...).initialized()
		h.await(h.ask("1", "resources/subscribe", `{"uri":"x:old"}`), "subscribe")
		h.call("2", "exit", `{}`)
		level := h.ask("3", "logging/setLevel", `{"level":"debug"}`)
		subscribe := h.ask("4", "resources/subscribe", `{"uri":"x:new"}`)
		h.await(level, "setLevel")
		h.await(subscribe, "subscribe")
		if w := h.call("5", "seen", `{}`); w.text() != "initialize notifications/initialized resources/subscribe logging/setLevel resources/subscribe tools/call" {
			t.Error(w.raw)
		}
	})
}
