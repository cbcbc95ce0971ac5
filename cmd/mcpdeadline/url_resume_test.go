package main

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

// SPEC 9.1. The server cuts both kinds of stream in the middle of an event: the notification stream
// and the stream of a call. The host gets every message once, however the lines end.
func TestURLStreamsResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const changed = `{"jsonrpc":"2.0","method":"notifications/%s/list_changed"}`
		server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			events := func(format string, args ...any) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = fmt.Fprintf(w, format, args...)
				_ = http.NewResponseController(w).Flush()
			}
			body, _ := io.ReadAll(r.Body)
			switch from := r.Header.Get("Last-Event-ID"); {
			case strings.Contains(string(body), `"initialize"`):
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`)
			case strings.Contains(string(body), `"tools/call"`):
				events("\xef\xbb\xbfid: call-1\rdata:\r\rdata: {\"jsonr")
			case r.Method == http.MethodPost:
				w.WriteHeader(http.StatusAccepted)
			case from == "":
				events("id: own-1\rdata: "+changed+"\r\rid: own-2\rdata: {", "tools")
			case from == "own-1":
				events("id: own-2\ndata: "+changed+"\n\n", "prompts")
				<-r.Context().Done()
			case from == "call-1":
				events(": resumed\r\n\r\nid: call-2\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"done\"}]}}\r\n\r\n")
			default:
				http.Error(w, "no such position", http.StatusBadRequest)
			}
		})
		h := (&virtualMachine{server: server}).host(t, "-url", there).initialized()
		if got := h.call("1", "any", `{}`); got.text() != "done" {
			t.Error(cmp.Or(got.raw, "no answer"))
		}
		for _, list := range []string{"tools", "prompts"} {
			eventually(t, list, func() bool { return len(h.got("notifications/"+list)) > 0 })
			if got := h.got("notifications/" + list); len(got) != 1 {
				t.Errorf("%q", got)
			}
		}
	})
}
