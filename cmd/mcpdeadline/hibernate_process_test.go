package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// hibernated counts how often the server of h has fallen asleep.
func hibernated(h *host) int { return strings.Count(h.stderr(), `msg="server asleep"`) }

// SPEC 16.2: a process sleeps, wakes for a call with all that holds for the session, and the host hears
// nothing of it. How it ends does not matter.
func TestHibernates(t *testing.T) {
	for name, env := range map[string]string{"at once": "", "late": "EVIL_FALL=1s", "badly": "EVIL_CODE=5", "never": "EVIL_FALL=1h"} {
		bubble(t, name, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "log")
			h := startProxy(t, []string{env, "EVIL_START=1ms"}, append([]string{"-hibernate", "10s", "-log", log}, evilArgs(t)...)...).initialized()
			h.await(h.ask("1", "logging/setLevel", `{"level":"debug"}`), "setLevel")
			h.await(h.ask("2", "tools/list", `{}`), "tools/list")
			first := h.call("3", "pid", `{}`)
			eventually(t, "sleep", func() bool { return strings.Contains(h.stderr(), "evil: stdin closed") })
			time.Sleep(500 * time.Millisecond)
			calls := make([]<-chan wire, 20) // some of them while it ends
			for i := range calls {
				calls[i] = h.start(fmt.Sprint(100+i), "pid", `{}`, `"t"`)
				h.await(h.ask(fmt.Sprint(200+i), "ping", `{}`), "ping")
			}
			pid := ""
			for _, c := range calls {
				if w := h.await(c, "pid"); pid == "" {
					pid = w.text()
				} else if w.text() != pid || pid == first.text() {
					t.Errorf("%s, not of %s, after %s", w.raw, pid, first.raw)
				}
			}
			seen := strings.ReplaceAll(h.call("4", "seen", `{}`).text(), " tools/list", "") // when they are compared
			if want := "initialize notifications/initialized logging/setLevel" + strings.Repeat(" tools/call", 21); seen != want {
				t.Error(cmp.Diff(want, seen))
			}
			if got := h.got("list_changed"); got != nil {
				t.Errorf("%q", got)
			}
			for _, text := range []string{"server ended", "server restarted"} {
				if strings.Contains(h.stderr(), text) {
					t.Error(h.stderr())
				}
			}
			var states []string
			for _, line := range strings.Split(strings.TrimSpace(read(t, log)), "\n") {
				var l serverLine
				if err := json.Unmarshal([]byte(line), &l); err != nil {
					t.Fatal(err)
				}
				if l.Server != "" {
					states = append(states, fmt.Sprint(l.Server, " ", l.Session, " ", l.Cause, " ", l.Slept > 0, l.Waking > 0))
				}
			}
			if d := cmp.Diff([]string{"asleep stdio  false false", "awake stdio tools/call true true"}, states[:2]); d != "" {
				t.Error(d)
			}
		})
	}
}

// SPEC 16.2: over HTTP each session has a server that sleeps by itself.
func TestHibernatesOverHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, client := overHTTP(t, nil, "-hibernate", "1s")
		one, two := connectHTTP(t, client, nil), connectHTTP(t, client, nil)
		asleep := func() int { return hibernated(h) - strings.Count(h.stderr(), `msg="server awake"`) }
		pids := make(map[string]bool)
		for range 2 {
			_, a := callTool(t, one, "pid", nil)
			_, b := callTool(t, two, "pid", nil)
			pids[a], pids[b] = true, true
			// One is asleep while the other answers.
			_, _ = callTool(t, two, "sleep", map[string]any{"ms": 3000})
			eventually(t, "sleep", func() bool { return asleep() == 2 })
			for _, s := range []*mcp.ClientSession{one, two} {
				if err := s.Ping(t.Context(), nil); err != nil {
					t.Error(err)
				}
			}
		}
		if len(pids) != 4 || asleep() != 2 {
			t.Errorf("%v\n%s", pids, h.stderr())
		}
	})
}

// A server that sleeps is on the page of -inspect.
func TestInspectSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := connect(t, "-inspect", ":0", "-hibernate", "500ms")
		client := &http.Client{Transport: &http.Transport{DialContext: h.vm.network.dial, DisableKeepAlives: true}}
		eventually(t, "it on the page", func() bool {
			res, err := client.Get("http://127.0.0.1/debug/tools?format=json")
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			page, _ := io.ReadAll(res.Body)
			return strings.Contains(string(page), "asleep; the next request wakes it")
		})
	})
}

// Where it cannot be done, it is refused.
func TestHibernateRefused(t *testing.T) {
	for args, want := range map[string]string{
		"-hibernate 10m -url http://127.0.0.1:1/mcp": "-hibernate: want a command",
		"-hibernate -1s -- x":                        `-hibernate="-1s": want a duration`,
		"-hibernate soon -- x":                       `-hibernate="soon": want a duration`,
	} {
		if _, err := parse(strings.Fields(args), new(strings.Builder)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
	for _, args := range []string{"-hibernate 0 -- x", "-hibernate 0 -url http://127.0.0.1:1/mcp", "-hibernate 10m -http :0 -- x"} {
		if _, err := parse(strings.Fields(args), new(strings.Builder)); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
}
