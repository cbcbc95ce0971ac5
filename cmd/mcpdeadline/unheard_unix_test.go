//go:build unix

package main

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// SPEC 16.7: a server that closes its stdout and lives fails what waits for it at once, and is started again.
func TestClosedStdout(t *testing.T) {
	t.Parallel()
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
}

// SPEC 16.7: a launcher that ends well while its server runs is no end of the server.
func TestLauncherEnds(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the end of the launcher is the end of the command there")
	}
	t.Parallel()
	// The server starts when the launcher has gone.
	script := `exec 3<&0; { while kill -0 $$ 2>/dev/null; do :; done; exec "$0" evil; } <&3 3<&- & exec 3<&-; exit 0`
	h := startProxy(t, nil, "-total", "1m", "--", "sh", "-c", script, self(t)).initialized()
	first := h.call("1", "pid", `{}`).text()
	h.call("2", "sleep", `{"ms":2000}`)
	if again := h.call("3", "pid", `{}`).text(); again != first || strings.Count(h.stderr(), "evil: started") != 1 {
		t.Errorf("%s and %s: %s", first, again, h.stderr())
	}
	// Its end is noticed, and it is started again.
	if w := h.call("4", "exit", `{}`); !w.Result.IsError || !strings.Contains(w.text(), "the server ended") {
		t.Error(w.raw)
	}
	if w := h.call("5", "echo", `{"text":"again"}`); w.text() != "again" {
		t.Error(w.raw)
	}
}
