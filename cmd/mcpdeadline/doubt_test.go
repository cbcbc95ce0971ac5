package main

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

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
