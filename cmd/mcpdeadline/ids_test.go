package main

import (
	"strings"
	"testing"
	"testing/synctest"
)

// An id is the same however it is spelled: the other side may spell it differently.
func TestIDsWrittenAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := connect(t)
		for _, id := range []string{`1.0`, `1e2`, `"caf\u00e9"`, `"a\/b"`, `"a<b"`, `2`, `"x"`} {
			for method, want := range map[string]string{
				"tools/call": `"result":{"content":[{"type":"text","text":"done"}]}`, "x/anew": `"result":{}`,
			} {
				w := h.await(h.ask(id, method, `{"name":"anew"}`), id)
				if !sameValue(string(w.ID), id) || !strings.Contains(w.raw, want) {
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
	})
}

// A second request with an id in use is refused, and the first is not affected.
func TestDuplicateID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := connect(t)
		answers := h.start("1.0", "sleep", `{"ms":700}`, "")
		h.send(`{"jsonrpc":"2.0","id":1,"method":"x/anew","params":{}}`)
		if w := h.await(answers, "the second"); !strings.Contains(w.raw, `"code":-32600`) || !strings.Contains(w.raw, "1") {
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

// SPEC 7.4: nothing is sent after the answer, however the server writes the token.
func TestLateProgressWrittenAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := connect(t)
		h.await(h.start("1", "echo", `{"text":"x"}`, `"caf\u00e9"`), "echo")
		h.call("2", "late", `{"token":"\"café\""}`)
		if got := h.got("notifications/progress"); got != nil {
			t.Errorf("%q", got)
		}
	})
}
