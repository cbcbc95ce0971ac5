package main

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// The total is how long a call takes in all, also if the server is deaf: the host is answered first.
func TestDeafIsAnsweredAtTheLimit(t *testing.T) {
	t.Parallel()
	h := connect(t, "-total", "2s", "-grace", "30s", "-ping", "30s", "-alive", "progress")
	begun := time.Now()
	if w := h.call("1", "deaf", `{}`); w.outcome() != "total 124" {
		t.Error(w.raw)
	}
	if d := time.Since(begun); d > 20*time.Second {
		t.Errorf("answered after %v", d)
	}
}

// A server that says nothing within the grace gets no longer than the host waits, and one that has been
// answered with a handle does.
func TestGraceEndsWithTheTotal(t *testing.T) {
	t.Parallel()
	h := connect(t, "-idle", "1s", "-total", "3s", "-grace", "30s", "-ping", "30s", "-alive", "progress")
	begun := time.Now()
	if w := h.call("1", "deaf", `{}`); w.outcome() != "idle 124" {
		t.Error(w.raw)
	}
	if d := time.Since(begun); d > 20*time.Second {
		t.Errorf("answered after %v", d)
	}
}

// SPEC 16.4: a server is not dead because it knows no pings, nor because it is busy.
func TestAliveInItsWay(t *testing.T) {
	for _, tc := range []struct {
		name, env, tool, args string
	}{
		{"knows no ping", "EVIL_RUDE=1", "hang", `{}`},
		{"busy in one thread", "EVIL_RUDE=", "busy", `{"ms":30000}`},
		{"busy and knows no ping", "EVIL_RUDE=1", "busy", `{"ms":5000}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.tool == "busy" && runtime.GOOS != "linux" {
				t.Skip("the processor is not seen there")
			}
			t.Parallel()
			flags := []string{"-tool", tc.tool + ":total=1s", "-idle", "0", "-total", "5m", "-grace", "500ms", "-ping", "2s"}
			h := startProxy(t, []string{tc.env}, append(flags, evilArgs(t)...)...).initialized()
			pid := h.call("1", "pid", `{}`)
			if w := h.call("2", tc.tool, tc.args); w.outcome() != "total 124" {
				t.Error(w.raw)
			}
			// It waits, and is sent once.
			if w := h.call("3", "pid", `{}`); w.text() != pid.text() || w.Result.IsError {
				t.Errorf("%s, before %s", w.raw, pid.raw)
			}
			if w := h.call("4", "seen", `{}`); strings.Count(w.text(), "tools/call") != 4 {
				t.Error(w.raw)
			}
			if said := h.stderr(); strings.Count(said, "evil: started") != 1 {
				t.Error(said)
			}
		})
	}
}

// A call that is cancelled while it waits for a server in doubt never reaches that.
func TestCancelledInDoubt(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the processor is not seen there")
	}
	t.Parallel()
	h := connect(t, "-tool", "busy:total=500ms")
	h.call("1", "busy", `{"ms":4000}`)
	h.start("2", "exit", `{}`, "")
	h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	if w := h.call("3", "echo", `{"text":"x"}`); w.text() != "x" {
		t.Error(w.raw)
	}
}
