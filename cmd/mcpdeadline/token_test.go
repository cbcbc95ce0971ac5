package main

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A progress token that is neither a text nor a number, and an id that is no JSON, end nothing but what they are of.
func TestOddTokens(t *testing.T) {
	for _, token := range []string{`{"a":1}`, `[]`, `[1]`, `true`, `false`, `null`, `{}`} {
		synctest.Test(t, func(t *testing.T) {
			server := &scripted{serve: func(r *scriptedRun, m *message) bool {
				if m.Method == "tools/call" {
					r.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + tokenOf(m) + `,"progress":1}}`)
				}
				return m.Method == "tools/call"
			}}
			h := connectScripted(t, server, "-total", "10s", "-grace", "0", "-keep-alive", "1s").initialized()
			begun := time.Now()
			m := h.answered("1", "tools/call", `{"name":"a","_meta":{"progressToken":`+token+`}}`)
			if took := time.Since(begun); took != 10*time.Second || !strings.Contains(string(m.raw), "limit of 10s") {
				t.Errorf("%s: after %v: %s", token, took, m.raw)
			}
			if got := h.heard(); len(got) > 0 { // it has not asked in a way that can be answered
				t.Errorf("%s: the host got %q", token, got)
			}
		})
	}
	for _, id := range []string{`007`, `-01`, `"\q"`, `"\u12"`, "\"\t\""} {
		if got := idOf([]byte(`{"result":"`), []byte(`","id":`+id+`}`)); got != nil && !json.Valid(got) {
			t.Errorf("%s: %s", id, got)
		}
	}
}
