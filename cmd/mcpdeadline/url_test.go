package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// there is the URL of the server of a machine.
const there = "http://server.test/mcp"

// A server at a URL gets the headers of the protocol and those of -header. Its question holds the idle check (SPEC 4.6), and
// it learns of the end of a call by a message, or, where requests stand alone, by the end of the stream.
func TestURL(t *testing.T) {
	t.Setenv("TOKEN", "secret")
	for _, tc := range []struct {
		name, meta string
		headers    []string
		learns     string
	}{
		{"a session", `"_meta":{}`, []string{"Bearer secret", "2025-11-25", "s", "", ""}, "a message"},
		{"requests that stand alone", standsAloneMeta, []string{"Bearer secret", "2026-07-28", "", "tools/call", "ask"}, "the stream"},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			answered, learned := make(chan string, 1), make(chan string, 10)
			var headers []string
			h := connectURL(t, func(w http.ResponseWriter, r *http.Request) {
				m := received(r)
				say := func(format string, args ...any) {
					fmt.Fprintf(w, "data: "+format+"\n\n", args...)
					_ = http.NewResponseController(w).Flush()
				}
				switch {
				case m.IsResponse():
					answered <- string(m.Raw)
				case m.Method == "notifications/cancelled":
					learned <- "a message"
				}
				if begins(w, r, m, "s") {
					return
				}
				if m.Method == "ping" {
					fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				if m.Fields().Name == "hang" {
					say("")
					if <-r.Context().Done(); tc.learns == "the stream" {
						learned <- "the stream"
					}
					return
				}
				for _, name := range []string{"Authorization", "Mcp-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Mcp-Name"} {
					headers = append(headers, r.Header.Get(name))
				}
				say(`{"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{"message":"really?"}}`)
				say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[],"got":%s}}`, m.ID, <-answered)
			}, "-idle", "8s", "-header", "Authorization: Bearer $TOKEN")
			if tc.learns == "a message" {
				h.initialized()
			}
			answer := h.ask("1", "tools/call", `{"name":"ask",`+tc.meta+`}`)
			time.Sleep(10 * time.Second) // a person takes longer than the idle limit
			h.send(`{"jsonrpc":"2.0","id":9,"result":{"action":"decline"}}`)
			if got := h.await(answer, "ask"); !strings.Contains(got.raw, "decline") {
				t.Error(got.raw)
			}
			if d := cmp.Diff(tc.headers, headers); d != "" {
				t.Error(d)
			}
			if got := h.answered("2", "tools/call", `{"name":"hang",`+tc.meta+`}`); got.outcome() != "idle 124" || <-learned != tc.learns {
				t.Error(got.raw)
			}
			// The proxy spells the id in another way where it cancels the request itself.
			if got := h.answered(`"<2>"`, "tools/call", `{"name":"hang",`+tc.meta+`}`); got.outcome() != "idle 124" {
				t.Error(got.raw)
			}
			synctest.Wait()
			select {
			case got := <-learned:
				if got != tc.learns {
					t.Error(got)
				}
			default:
				t.Error("the server has not learned of the end of the call")
			}
			h.ask("3", "tools/call", `{"name":"hang",`+tc.meta+`}`)
			synctest.Wait()
			h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
			if got := <-learned; got != tc.learns {
				t.Error(got)
			}
		})
	}
}
