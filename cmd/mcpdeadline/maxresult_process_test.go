package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
)

var evilID = regexp.MustCompile(`"id":"(evil\.r[a-z2-7]+)"`)

// readLong reads a result of the tool long that was cut, whole.
func readLong(t *testing.T, h *host, text string, want int) {
	t.Helper()
	found := evilID.FindStringSubmatch(text)
	if found == nil || len(text) > 2000 {
		t.Fatalf("%d characters: %.300s", len(text), text)
	}
	w := h.call(`"end"`, "read_result", fmt.Sprintf(`{"id":"%s","offset":%d}`, found[1], want-5))
	if w.text() != fmt.Sprintf("xxxxx\n[Characters %d to %d of %d, the end.]", want-5, want, want) {
		t.Errorf("%.300s", w.raw)
	}
}

// SPEC 16.5: results of calls that outlive their answer are cut once, and what is kept survives the server,
// its sleep included.
func TestMaxResultOfHandles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := connect(t, "-max-result", "2000", "-soft", "500ms", "-hibernate", "1s", "-keep-alive", "100ms")
		n := 0
		long := func(args string) (w wire, id string) {
			n++
			w = h.call(fmt.Sprint(n), "long", args)
			for strings.HasPrefix(w.text(), "Still running") {
				id = continued(t, w)
				n++
				w = h.call(fmt.Sprint(n), "wait_for_result", id)
			}
			return w, id
		}
		first, _ := long(`{"bytes":50000}`)
		readLong(t, h, first.text(), 50000)

		w, id := long(`{"bytes":60000,"ms":6000}`)
		readLong(t, h, w.text(), 60000)
		if again := h.call("100", "wait_for_result", id); again.text() != w.text() {
			t.Errorf("%.300s", again.raw)
		}

		var task struct {
			Result struct{ Task struct{ TaskID string } }
		}
		w = h.await(h.ask("101", "tools/call", `{"name":"long","arguments":{"bytes":70000},"task":{}}`), "long")
		if err := json.Unmarshal([]byte(w.raw), &task); err != nil || task.Result.Task.TaskID == "" {
			t.Fatal(w.raw)
		}
		w = h.await(h.ask("102", "tasks/result", `{"taskId":"`+task.Result.Task.TaskID+`"}`), "tasks/result")
		readLong(t, h, w.text(), 70000)
		if w.Result.Meta["io.modelcontextprotocol/related-task"] == nil {
			t.Errorf("%.300s", w.raw)
		}

		h.call("103", "exit", `{}`)
		readLong(t, h, first.text(), 50000)
		awake := func() int { return strings.Count(h.stderr(), `msg="server awake"`) }
		eventually(t, "sleep", func() bool { return hibernated(h) > awake() })
		before := awake()
		readLong(t, h, first.text(), 50000)
		if awake() != before {
			t.Error("reading has woken the server")
		}
	})
}

// SPEC 16.5: over HTTP a session reads its own results, and they go with it.
func TestMaxResultOverHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := overHTTP(t, nil, "-max-result", "2000")
		one, two := connectHTTP(t, client, nil), connectHTTP(t, client, nil)
		_, text := callTool(t, one, "long", map[string]any{"bytes": 5000})
		id := evilID.FindStringSubmatch(text)[1]
		if _, got := callTool(t, one, "read_result", map[string]any{"id": id, "offset": 4999}); got != "x\n[Characters 4999 to 5000 of 5000, the end.]" {
			t.Error(got)
		}
		if res, got := callTool(t, two, "read_result", map[string]any{"id": id}); !res.IsError || !strings.HasPrefix(got, "no result with the id") {
			t.Error(got)
		}
	})
}
