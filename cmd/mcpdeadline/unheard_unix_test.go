//go:build unix

package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

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
		if took := time.Since(begun); took > time.Minute { // and not after the idle limit
			t.Error(took)
		}
		if w := h.call("3", "echo", `{"text":"again"}`); w.text() != "again" {
			t.Error(w.raw)
		}
	})
}
