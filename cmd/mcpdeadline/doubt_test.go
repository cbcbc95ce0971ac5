package main

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The total is how long a call takes in all, also if the server is deaf: the host is answered first.
func TestDeafIsAnsweredAtTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := connect(t, "-total", "2s", "-grace", "30s", "-ping", "30s", "-alive", "progress")
		begun := time.Now()
		if w := h.call("1", "deaf", `{}`); w.outcome() != "total 124" {
			t.Error(w.raw)
		}
		if d := time.Since(begun); d > 20*time.Second {
			t.Errorf("answered after %v", d)
		}
	})
}

// A server that says nothing within the grace gets no longer than the host waits, and one that has been
// answered with a handle does.
func TestGraceEndsWithTheTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := connect(t, "-idle", "1s", "-total", "3s", "-grace", "30s", "-ping", "30s", "-alive", "progress")
		begun := time.Now()
		if w := h.call("1", "deaf", `{}`); w.outcome() != "idle 124" {
			t.Error(w.raw)
		}
		if d := time.Since(begun); d > 20*time.Second {
			t.Errorf("answered after %v", d)
		}
	})
}

// SPEC 16.4: a host that pings a server which does one thing at a time does not end it for a call that has its limits,
// nor while the proxy finds out whether it is alive. If nothing is open, only the server answers.
func TestPingsDuringACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startProxy(t, []string{"EVIL_RUDE=1"}, append([]string{"-idle", "0", "-total", "3s", "-grace", "1s", "-ping", "10m", "-alive", "progress"}, evilArgs(t)...)...).initialized()
		passed := h.ask("1", "ping", `{}`)
		h.await(h.ask("2", "tools/list", `{}`), "tools/list")
		deaf := h.start("3", "deaf", `{}`, "")
		if w := h.await(h.ask("4", "ping", `{}`), "a ping during the call"); w.Error != nil {
			t.Errorf("%s", w.raw)
		}
		if w := h.await(deaf, "the call"); w.outcome() != "total 124" {
			t.Errorf("%s", w.raw)
		}
		h.await(h.ask("5", "ping", `{}`), "a ping in doubt")
		if len(passed) > 0 {
			t.Errorf("the proxy answered a ping while nothing was open: %s", (<-passed).raw)
		}
	})
}

// Where nothing but the host's pings finds out that a server hangs, they are not answered for it: after a call whose server
// is never killed, and during one without limits.
func TestPingsOfAServerThatNobodyEnds(t *testing.T) {
	for name, flags := range map[string][]string{
		"never killed": {"-idle", "0", "-total", "1s", "-grace", "200ms", "-ping", "0", "-alive", "progress"},
		"no limits":    {"-idle", "0", "-total", "0", "-ping", "10m"},
	} {
		bubble(t, name, func(t *testing.T) {
			h := startProxy(t, []string{"EVIL_RUDE=1"}, append(flags, evilArgs(t)...)...).initialized()
			deaf := h.start("1", "deaf", `{}`, "")
			if name == "never killed" {
				h.await(deaf, "the call")
			} else {
				time.Sleep(time.Second)
			}
			pinged := h.ask("2", "ping", `{}`)
			time.Sleep(time.Second)
			if len(pinged) > 0 {
				t.Errorf("%s", (<-pinged).raw)
			}
		})
	}
}

// SPEC 16.4: a server is not dead because it knows no pings, nor because it is busy.
func TestAliveInItsWay(t *testing.T) {
	for _, tc := range []struct {
		name, env, tool, args string
	}{
		{"knows no ping", "EVIL_RUDE=1", "hang", `{}`},
		{"busy in one thread", "EVIL_RUDE=", "busy", `{"ms":14000}`},
		{"busy and knows no ping", "EVIL_RUDE=1", "busy", `{"ms":14000}`},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			if tc.tool == "busy" && runtime.GOOS != "linux" {
				t.Skip("the processor is not seen there")
			}
			flags := []string{"-tool", tc.tool + ":total=1s", "-idle", "0", "-total", "5m", "-grace", "500ms", "-ping", "10s"} // within which a slow machine answers
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
