package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// A sharedClient is one of several clients whose requests stand alone.
type sharedClient struct {
	got  *httptest.ResponseRecorder
	gone context.CancelFunc
	over chan struct{}
}

func (h *webHost) alone(method, tool string) *sharedClient {
	ctx, gone := context.WithCancel(context.Background())
	c := &sharedClient{httptest.NewRecorder(), gone, make(chan struct{})}
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"name":"` + tool + `",` + standsAloneMeta + `}}`
	go func() {
		defer close(c.over)
		h.w.ServeHTTP(c.got, h.request(strings.NewReader(body), "Accept", "text/event-stream").WithContext(ctx))
	}()
	synctest.Wait()
	return c
}

// Requests of 2026-07-28 share one server. A notification belongs to the request on whose stream the server sent
// it, or that it names, and never reaches the client of another one: also if its own has gone, or has its answer,
// or is no call. What belongs to none is dropped.
func TestNotificationsOfOtherClients(t *testing.T) {
	const secret = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"secret"}}`
	for name, method := range map[string]string{"calls": "tools/call", "other requests": "resources/read"} {
		for _, ends := range []string{"is open", "has its answer", "has gone"} {
			bubble(t, "over HTTP, "+name+", "+ends, func(t *testing.T) {
				logs, answer := make(chan string), make(chan bool)
				handler := func(w http.ResponseWriter, r *http.Request) {
					m := received(r)
					w.Header().Set("Content-Type", "text/event-stream")
					say := func(text string) {
						_, _ = io.WriteString(w, "data: "+text+"\n\n")
						_ = http.NewResponseController(w).Flush()
					}
					say("")
					end := func() { say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete"}}`, m.ID)) }
					if strings.Contains(string(m.Params), `"b"`) {
						<-answer
						end()
						return
					}
					for text := range logs {
						if text == "" {
							end()
						} else {
							say(text)
						}
					}
				}
				h := newWebHost(t, &virtualMachine{server: http.HandlerFunc(handler)}, "-url", there)
				defer h.w.End()
				a, b := h.alone(method, "a"), h.alone("tools/call", "b")
				switch ends {
				case "has its answer":
					logs <- ""
					<-a.over
				case "has gone":
					a.gone()
					<-a.over
				}
				synctest.Wait()
				logs <- secret
				synctest.Wait()
				close(answer)
				<-b.over
				if strings.Contains(b.got.Body.String(), "secret") || !strings.Contains(b.got.Body.String(), "complete") {
					t.Error(b.got.Body)
				}
				a.gone()
				<-a.over
				if got := a.got.Body.String(); strings.Contains(got, "secret") != (ends == "is open") {
					t.Error(got)
				}
				close(logs)
			})
		}
	}
	bubble(t, "over stdio", func(t *testing.T) {
		open := make(map[string]*jsonrpc.Message)
		refused := make(chan *jsonrpc.Message, 1)
		var run *virtual
		h := newWebHost(t, &virtualMachine{program: script(func(p *virtual, m *jsonrpc.Message) bool {
			if run = p; m.IsResponse() {
				refused <- m
			}
			for _, tool := range []string{"a", "b"} {
				if strings.Contains(string(m.Params), `"name":"`+tool+`"`) {
					open[tool] = m
					return true
				}
			}
			return false
		})}, "--", "server")
		defer h.w.End()
		a, b := h.alone("resources/read", "a"), h.alone("tools/call", "b")
		run.say(secret)
		run.say(`{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"secret"}}`)
		if m := <-refused; string(m.ID) != "7" || m.Error == nil {
			t.Errorf("%s", m.Raw)
		}
		for _, tool := range []string{"a", "b"} {
			run.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + tokenOf(open[tool]) + `,"progress":1,"message":"of ` + tool + `"}}`)
			run.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"for ` + tool + `","_meta":{"io.modelcontextprotocol/subscriptionId":` + string(open[tool].ID) + `}}}`)
		}
		run.answer(open["a"], `{"resultType":"complete"}`)
		<-a.over
		run.say(secret) // of a, late
		run.answer(open["b"], `{"resultType":"complete"}`)
		<-b.over
		for other, c := range map[string]*sharedClient{"b": a, "a": b} {
			got := c.got.Body.String()
			own := map[string]string{"a": "b", "b": "a"}[other]
			if strings.Contains(got, "secret") || strings.Contains(got, "of "+other) || strings.Contains(got, "for "+other) ||
				!strings.Contains(got, "of "+own) || !strings.Contains(got, "for "+own) || !strings.Contains(got, `"id":1,"result":{"resultType":"complete"}`) {
				t.Errorf("%s: %s", own, got)
			}
		}
	})
}
