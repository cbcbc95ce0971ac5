package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/remote"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
)

// connectURL has the proxy serve a host within a bubble, with a server at http://server.test/mcp. The server gets the
// requests to all hosts and ports.
func connectURL(t *testing.T, handler http.HandlerFunc, flags ...string) *client {
	t.Helper()
	return (&virtualMachine{server: handler, most: most}).host(t, append([]string{"-url", there}, flags...)...)
}

// received returns the message of a request.
func received(r *http.Request) *jsonrpc.Message {
	body, _ := io.ReadAll(r.Body)
	return jsonrpc.Parse(body)
}

// begins answers initialize, notifications and requests for streams. It reports false for another message.
func begins(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message, session string) bool {
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case m.Method == "initialize":
		w.Header().Set("Content-Type", "application/json")
		if session != "" {
			w.Header().Set("Mcp-Session-Id", session)
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`, m.ID)
	case !m.IsRequest():
		w.WriteHeader(http.StatusAccepted)
	default:
		return false
	}
	return true
}

// SPEC 8.11. Whatever a server sends for a request belongs to it, and answers it or fails it at once. The
// answers are those of servers that have been met, and what else goes wrong with them.
func TestWhatAnswersARequest(t *testing.T) {
	const (
		asJSON   = "application/json"
		asEvents = "text/event-stream"
		failed   = `"error":{"code":-32000,"message":"Forbidden"}`
		done     = `"result":{"content":[{"type":"text","text":"done"}]}`
	)
	type tc struct {
		name   string
		status int
		kind   string
		body   string // %s is the request's id
		want   string // part of the answer
		held   bool   // the response does not end
		breaks bool   // the connection ends before the response
		took   time.Duration
	}
	cases := []tc{
		{name: "204", status: 204, want: "204 No Content: the server answered with nothing"},
		{name: "202", status: 202, want: "202 Accepted: the server answered with nothing"},
		{name: "200 and nothing", status: 200, kind: asJSON, want: "200 OK, application/json: the server answered with nothing"},
		{name: "200, nothing and no type", status: 200, want: "200 OK: the server answered with nothing"},
		{name: "500 and nothing", status: 500, want: "500 Internal Server Error: the server answered with nothing"},
		{name: "white space", status: 200, kind: asJSON, body: " \r\n\t ", want: "the server answered with nothing"},
		{name: "a mark", status: 200, kind: asJSON, body: "\ufeff", want: "the server answered with nothing"},
		{name: "half a mark", status: 200, kind: asJSON, body: "\xef\xbb", want: "the server answered with no"},
		{name: "HTML", status: 200, kind: "text/html; charset=utf-8", body: "<html>\n<h1>Sign in</h1>\n</html>", want: `200 OK, text/html; charset=utf-8: the server answered with no JSON-RPC answer: \u003chtml\u003e \u003ch1\u003eSign in`},
		{name: "HTML of a gateway", status: 502, kind: "text/html", body: "<h1>Bad Gateway</h1>", want: "502 Bad Gateway: "},
		{name: "HTML that does not end", status: 200, kind: "text/html", body: "<h1>Wait", held: true, want: "Wait", took: remote.TextLimit},
		{name: "much text", status: 200, body: strings.Repeat("<p>", 1<<20), want: "\\u003cp\\u003e..."},
		{name: "a text", status: 429, kind: "text/plain", body: "slow down", want: "429 Too Many Requests: slow down"},
		{name: "a JSON text", status: 400, kind: asJSON, body: `"no"`, want: `400 Bad Request: \"no\"`},
		{name: "null", status: 200, kind: asJSON, body: `null`, want: "no JSON-RPC answer: null"},
		{name: "cut JSON", status: 200, kind: asJSON, body: `{"jsonrpc":"2.0","id":%s,"result":{"con`, want: `no JSON-RPC answer: {\"jsonrpc\"`},
		{name: "an answer that breaks off", status: 200, kind: asJSON, body: `{"jsonrpc":"2.0","id":%s,"result":{"con`, breaks: true, want: "the answer broke off after "},
		{name: "a page that breaks off", status: 500, kind: "text/html", body: `<h1>`, breaks: true, want: "500 Internal Server Error: "},
		{name: "a stream that breaks off", status: 200, kind: asEvents, body: "data: {\"jsonrpc\"", breaks: true, want: "unexpected EOF"},
		{name: "a response that breaks off", status: 200, kind: asJSON, breaks: true, want: "unexpected EOF"},
		{name: "a key twice", status: 200, kind: asEvents, body: "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"id\":0,\"result\":{}}\n\n", held: true, want: "no JSON-RPC answer: {"},
		{name: "a key of two spellings", status: 200, kind: asEvents, body: "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"ID\":0,\"result\":{}}\n\n", held: true, want: "{"},
		{name: "a position that no header can hold", status: 200, kind: asEvents, body: "id: \x01\ndata: x\n\n", want: "closed the stream before it answered"},
		{name: "two answers", status: 200, kind: asJSON, body: `{"jsonrpc":"2.0","id":%s,"result":{}}` + "\n" + `{"jsonrpc":"2.0","id":%s,"result":{}}`, want: "no JSON-RPC answer"},
		{name: "an answer without jsonrpc", status: 200, kind: asJSON, body: `{"id":%s,"result":{}}`, want: "no JSON-RPC answer"},
		{name: "an answer of JSON-RPC 1", status: 200, kind: asJSON, body: `{"id":%s,"result":{},"error":null}`, want: "no JSON-RPC answer"},
		{name: "a number as jsonrpc", status: 200, kind: asJSON, body: `{"jsonrpc":2.0,"id":%s,"result":{}}`, want: "no JSON-RPC answer"},
		{name: "an error of OAuth", status: 401, kind: asJSON, body: `{"error":"invalid_token","error_description":"expired"}`, want: "401 Unauthorized: {"},
		{name: "an error of a gateway", status: 403, kind: asJSON, body: `{"message":"Forbidden"}`, want: `403 Forbidden: {\"message\"`},
		{name: "a notification", status: 200, kind: asJSON, body: `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`, want: "no JSON-RPC answer"},
		{name: "a request", status: 200, kind: asJSON, body: `{"jsonrpc":"2.0","id":7,"method":"ping"}`, want: "no JSON-RPC answer"},
		{name: "an empty batch", status: 200, kind: asJSON, body: `[]`, want: "no JSON-RPC answer: []"},
		{name: "a batch within a batch", status: 200, kind: asJSON, body: `[[{"jsonrpc":"2.0","id":%s,` + done + `}]]`, want: "no JSON-RPC answer"},
		{name: "a batch with a notification", status: 200, kind: asJSON, body: `[{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}},{"jsonrpc":"2.0","id":%s,` + done + `}]`, want: done},
		{name: "a stream without events", status: 200, kind: asEvents, want: "closed the stream before it answered\""},
		{name: "a stream of comments", status: 200, kind: asEvents, body: ": hello\n\n", want: "closed the stream before it answered"},
		{name: "a stream without the answer", status: 200, kind: asEvents, body: "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n", want: "closed the stream before it answered\""},
		{name: "a stream of something else", status: 200, kind: asEvents, body: "data: sorry\n\n", want: "closed the stream before it answered; before, it sent: sorry"},
		{name: "half an event", status: 200, kind: asEvents, body: "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n", want: "closed the stream before it answered"},
		{name: "an error event", status: 200, kind: asEvents, body: "event: error\ndata: {\"error\":\"boom\"}\n\n", held: true, want: "no JSON-RPC answer: {\\\"error\\\":\\\"boom\\\"}"},
		{name: "keep-alives, then the answer", status: 200, kind: asEvents, body: "event: ping\ndata: {}\n\ndata: {\"id\":99,\"type\":\"ping\"}\n\ndata: ping\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s," + done + "}\n\n", held: true, want: done},
		{name: "events of a wrong type", status: 200, kind: "text/plain", body: "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s," + done + "}\n\n", held: true, want: done},
		{name: "JSON of the type of events", status: 200, kind: asEvents, body: `{"jsonrpc":"2.0","id":%s,` + done + `}`, want: done},
		{name: "events of a refusal", status: 403, kind: asEvents, body: "data: {\"jsonrpc\":\"2.0\",\"id\":null," + failed + "}\n\n", held: true, want: failed},
		{name: "lines and marks", status: 200, kind: asJSON + "; charset=UTF-8", body: "\ufeff\r\n {\"jsonrpc\":\"2.0\",\r\n\"id\":%s,\n" + done + "}\r\n", want: done},
		{name: "a mark before events", status: 200, kind: asEvents, body: "\ufeffdata: \ufeff{\"jsonrpc\":\"2.0\",\"id\":%s," + done + "}\n\n", want: done},
		{name: "UTF-16", status: 200, kind: asJSON + "; charset=utf-16", body: "\xff\xfe{\x00}\x00", want: "200 OK, application/json; charset=utf-16: the server answered with no JSON-RPC answer"},
		{name: "white space that keeps the connection open", status: 200, kind: asJSON, body: strings.Repeat(" ", 12<<10) + `{"jsonrpc":"2.0","id":%s,` + done + `}`, want: done},
		{name: "a result and no error", status: 200, kind: asJSON, body: `{"jsonrpc":"2.0","id":%s,"error":null,` + done + `}`, want: done},
		{name: "an error and no result", status: 200, kind: asJSON, body: `{"jsonrpc":"2.0","id":%s,"result":null,` + failed + `}`, want: failed},
		{name: "an answer, and one more", status: 200, kind: asEvents, body: "data: {\"jsonrpc\":\"2.0\",\"id\":%s," + done + "}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n\n", want: done},
	}
	for _, id := range []string{`""`, `"server-error"`, `0`, `1`, `null`, `-1`, `"%s"`, `99`, `9007199254740993`, `123456789012345678901234567890`, `5.0`, `"\u0066ive"`, `1e400`, `1.5`, `true`, `{}`, `[]`, ``} {
		member := `"id":` + id + `,`
		if id == "" {
			member = ""
		}
		for _, status := range []int{200, 202, 400, 403, 500} {
			cases = append(cases,
				tc{name: fmt.Sprintf("the id %s of an error, %d", id, status), status: status, kind: asJSON, body: `{"jsonrpc":"2.0",` + member + failed + `}`, want: failed},
				tc{name: fmt.Sprintf("the id %s of an event, %d", id, status), status: status, kind: asEvents, body: "event: message\ndata: {\"jsonrpc\":\"2.0\"," + member + failed + "}\n\n", held: true, want: failed},
				tc{name: fmt.Sprintf("the id %s in a batch, %d", id, status), status: status, kind: asJSON, body: `[{"jsonrpc":"2.0",` + member + failed + `}]`, want: failed})
		}
		cases = append(cases, tc{name: "the id " + id + " of a result", status: 200, kind: asJSON, body: `{"jsonrpc":"2.0",` + member + done + `}`, want: done})
	}
	for _, rest := range []string{`"x":1`, `"result":null`, `"result":"text"`, `"error":null`, `"error":"text"`, `"error":{}`, `"error":{"message":"x"}`, `"error":{"code":"a","message":"x"}`, `"error":{"code":1.5,"message":"x"}`, `"result":{},` + failed} {
		cases = append(cases,
			tc{name: "JSON with " + rest, status: 200, kind: asJSON, body: `{"jsonrpc":"2.0","id":%s,` + rest + `}`, want: "no JSON-RPC answer: {"},
			tc{name: "an event with " + rest, status: 200, kind: asEvents, body: "data: {\"jsonrpc\":\"2.0\",\"id\":%s," + rest + "}\n\n", held: true, want: "no JSON-RPC answer: {"})
	}
	for _, method := range []string{"tools/call", "tools/list"} {
		for _, id := range []string{`5`, `"five"`} {
			for _, tc := range cases {
				bubble(t, tc.name+", "+method+" "+id, func(t *testing.T) {
					h := connectURL(t, func(w http.ResponseWriter, r *http.Request) {
						m := received(r)
						if begins(w, r, m, "") {
							return
						}
						if tc.kind != "" {
							w.Header().Set("Content-Type", tc.kind)
						} else {
							w.Header()["Content-Type"] = nil
						}
						if tc.breaks {
							w.Header().Set("Content-Length", "1000")
						}
						w.WriteHeader(tc.status)
						_, _ = io.WriteString(w, filled(tc.body, string(m.ID)))
						if tc.held {
							_ = http.NewResponseController(w).Flush()
							<-r.Context().Done()
						}
					})
					h.initialized()
					begun := time.Now()
					m := h.answered(id, method, `{"name":"a"}`)
					if took := time.Since(begun); took != tc.took {
						t.Errorf("took %v", took)
					}
					if got := m.raw; !strings.Contains(got, tc.want) || string(m.ID) != id || !json.Valid([]byte(m.raw)) || strings.ContainsAny(m.raw, "\r\n") {
						t.Errorf("%s, want %s", got, tc.want)
					}
					if n := len(h.got(`"id":` + id)); n != 1 {
						t.Errorf("%d answers", n)
					}
				})
			}
		}
	}
}

// filled puts an id in for each %s. One in quotes is the text of the id.
func filled(body, id string) string {
	return strings.ReplaceAll(strings.ReplaceAll(body, `"%s"`, `"`+strings.Trim(id, `"`)+`"`), "%s", id)
}

// SPEC 8.11. An answer with the id of another request is that one's. One that belongs to no request is logged,
// and answers none.
func TestAnswersOfOtherRequests(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}`
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h := connectURL(t, func(w http.ResponseWriter, r *http.Request) {
			m := received(r)
			if begins(w, r, m, "") {
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			switch string(m.ID) {
			case "1":
				_, _ = io.WriteString(w, ": wait\n\n")
				_ = http.NewResponseController(w).Flush()
				<-release
				fmt.Fprintf(w, "data: "+answer+"\n\n", "1", "late")
			case "2": // answers 1 first, then 3, which nobody has asked for yet, and itself twice
				fmt.Fprintf(w, "data: "+answer+"\n\n", "1", "one")
				fmt.Fprintf(w, "data: "+answer+"\n\n", "2", "two")
				fmt.Fprintf(w, "data: "+answer+"\n\n", "2", "twice")
				fmt.Fprintf(w, "data: "+answer+"\n\n", `"x"`, "stray")
			}
		})
		h.initialized()
		one, two := h.ask("1", "tools/call", `{"name":"a"}`), h.ask("2", "tools/call", `{"name":"a"}`)
		if m := <-one; !strings.Contains(m.raw, `"one"`) {
			t.Errorf("%s", m.raw)
		}
		if m := <-two; !strings.Contains(m.raw, `"two"`) {
			t.Errorf("%s", m.raw)
		}
		close(release)
		synctest.Wait()
		for _, text := range []string{"late", "twice", "stray"} {
			if !strings.Contains(h.stderr(), "belongs to no request") || !strings.Contains(h.stderr(), text) {
				t.Errorf("%s: %s", text, h.stderr())
			}
		}
		h.nothingMore()
	})
}

// The answer to one of the last requests that the host has given up is not that to another one, on whose stream it comes.
func TestAnswerToACancelledRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := connectURL(t, func(w http.ResponseWriter, r *http.Request) {
			m := received(r)
			if begins(w, r, m, "") {
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			if _ = http.NewResponseController(w).Flush(); string(m.ID) != "65" {
				<-r.Context().Done()
			}
			_, _ = io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"of\":1}}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":65,\"result\":{\"of\":65}}\n\n")
		})
		// Requests that stand alone are cancelled by the end of their streams.
		for id := 1; id <= 64; id++ {
			h.ask(fmt.Sprint(id), "tools/call", `{"name":"a",`+standsAloneMeta+`}`)
			synctest.Wait()
			h.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
			synctest.Wait()
		}
		if m := h.answered("65", "tools/call", `{"name":"a",`+standsAloneMeta+`}`); !strings.Contains(m.raw, `"of":65`) {
			t.Errorf("%s", m.raw)
		}
		if !strings.Contains(h.stderr(), "belongs to no request") {
			t.Error(h.stderr())
		}
	})
}

// SPEC 16.8. A server that neither answers a cancelled request nor closes its stream has as long as for a message that
// needs no answer, and as long as the proxy waits for one.
func TestCancelledStreamEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		flags []string
		by    string // what the host sends
		of    string // the method of the request
		took  time.Duration
	}{
		"by the host":      {nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, "tools/call", remote.AcceptLimit},
		"at a limit":       {[]string{"-idle", "8s"}, "", "tools/call", 8*time.Second + remote.AcceptLimit},
		"a long grace":     {[]string{"-idle", "8s", "-total", "0", "-grace", "5m"}, "", "tools/call", 8*time.Second + 5*time.Minute},
		"the proxy's ping": {[]string{"-idle", "8s"}, "", "ping", 8*time.Second + remote.AcceptLimit},
	} {
		bubble(t, name, func(t *testing.T) {
			begun, ended := time.Now(), make(chan time.Duration, 1)
			h := connectURL(t, func(w http.ResponseWriter, r *http.Request) {
				m := received(r)
				if begins(w, r, m, "s") {
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				_ = http.NewResponseController(w).Flush()
				if <-r.Context().Done(); m.Method == tc.of {
					ended <- time.Since(begun)
				}
			}, tc.flags...)
			h.initialized()
			h.ask("1", "tools/call", `{"name":"a"}`)
			synctest.Wait()
			if tc.by != "" {
				h.send(tc.by)
			}
			if took := <-ended; took != tc.took {
				t.Errorf("ended after %v", took)
			}
		})
	}
}

// What the server says to a message that needs no answer is logged, and holds nothing up: neither a stream
// that stays open, nor a notification that it does not accept.
func TestNotificationsHoldNothingUp(t *testing.T) {
	for name, tc := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		logged string
		took   time.Duration
	}{
		"refused": {func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no such thing", 400) }, "400 Bad Request: no such thing", 0},
		"an error": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(400)
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":"","error":{"code":-32000,"message":"No"}}`)
		}, `"message\":\"No`, 0},
		"an answer": {func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"jsonrpc":"2.0","id":3,"result":{}}`) }, "belongs to no request", 0},
		"a stream": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, "", 0},
		"no response": {func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "", remote.OrderLimit},
	} {
		bubble(t, name, func(t *testing.T) {
			h := connectURL(t, func(w http.ResponseWriter, r *http.Request) {
				m := received(r)
				switch {
				case m.Method == "x/notify":
					tc.answer(w, r)
				case !begins(w, r, m, ""):
					fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
				}
			})
			h.initialized()
			begun := time.Now()
			h.send(`{"jsonrpc":"2.0","method":"x/notify"}`)
			if m := h.answered("3", "tools/list", `{}`); m.Error != nil || time.Since(begun) != tc.took {
				t.Errorf("%s after %v", m.raw, time.Since(begun))
			}
			synctest.Wait()
			if !strings.Contains(h.stderr(), tc.logged) {
				t.Error(h.stderr())
			}
			h.nothingMore()
		})
	}
}

// A stream that ended without the answer is resumed. It may repeat answers to other requests, which are not
// its own; one that differs only in its type is. A server that refuses is not asked again.
func TestResumedStream(t *testing.T) {
	const first = "id: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n"
	for name, tc := range map[string]struct {
		resumed http.HandlerFunc
		want    string
		took    time.Duration
	}{
		"others first": {replies(200, "id: 2\ndata: {\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{\"of\":77}}\n\nid: 3\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"5\",\"result\":{\"of\":5}}\n\n", "Content-Type", "text/event-stream"), `"result":{"of":5}`, remote.ReopenDelay},
		"refused":      {replies(404, ""), "404", remote.ReopenDelay},
		"not known":    {replies(400, ""), "400", remote.ReopenDelay},
		"no stream":    {replies(200, "{}"), "application/json", remote.ReopenDelay},
		"moved":        {replies(307, "", "Location", "http://other.test/"), "another origin", remote.ReopenDelay},
		"down":         {replies(503, ""), "503", remote.MaxResumes * remote.ReopenDelay},
	} {
		bubble(t, name, func(t *testing.T) {
			h := connectURL(t, func(w http.ResponseWriter, r *http.Request) {
				m := received(r)
				switch {
				case r.Header.Get("Last-Event-ID") != "":
					tc.resumed(w, r)
				case !begins(w, r, m, "s"):
					replies(200, first, "Content-Type", "text/event-stream")(w, r)
				}
			})
			h.initialized()
			begun := time.Now()
			got := h.answered("5", "tools/call", `{"name":"a"}`)
			if took := time.Since(begun); !strings.Contains(got.raw, tc.want) || took != tc.took {
				t.Errorf("%s after %v\n%s", got.raw, took, h.stderr())
			}
		})
	}
}

// The answer to initialize belongs to it, too, with its session. What is no answer fails it at once.
func TestAnswerToInitialize(t *testing.T) {
	const result = `"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`
	for name, tc := range map[string]struct{ kind, body, want string }{
		"another spelling": {"application/json", `{"jsonrpc":"2.0","id":"\u0069nit",` + result + `}`, result},
		"an empty id":      {"application/json", `{"jsonrpc":"2.0","id":"",` + result + `}`, result},
		"another":          {"application/json", `{"jsonrpc":"2.0","id":0,` + result + `}`, result},
		"a batch":          {"application/json", `[{"jsonrpc":"2.0","id":"init",` + result + `}]`, result},
		"an open event":    {"text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":null," + result + "}\n\n", result},
		"a page":           {"text/html", "<h1>Welcome</h1>", "Welcome"},
	} {
		bubble(t, name, func(t *testing.T) {
			h := connectURL(t, func(w http.ResponseWriter, r *http.Request) {
				switch m := received(r); {
				case m.Method == "initialize":
					w.Header().Set("Mcp-Session-Id", "s")
					w.Header().Set("Content-Type", tc.kind)
					if _, _ = io.WriteString(w, tc.body); tc.kind == "text/event-stream" {
						_ = http.NewResponseController(w).Flush()
						<-r.Context().Done()
					}
				case r.Header.Get("Mcp-Session-Id") != "s":
					w.WriteHeader(http.StatusBadRequest)
				case !begins(w, r, m, ""):
					fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"x":1}}`, m.ID)
				}
			})
			begun := time.Now()
			got := h.answered(`"init"`, "initialize", initialize)
			if !strings.Contains(got.raw, tc.want) || string(got.ID) != `"init"` || time.Since(begun) != 0 {
				t.Errorf("%s after %v", got.raw, time.Since(begun))
			}
			if tc.want != result {
				return
			}
			h.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			if got := h.answered("1", "tools/list", `{}`); got.Error != nil || time.Since(begun) != 0 {
				t.Errorf("%s after %v", got.raw, time.Since(begun))
			}
		})
	}
}

// An answer on the notification stream is that to the request with this id, also if that is of another type.
func TestAnswerOnTheNotificationStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan struct{})
		h := connectURL(t, func(w http.ResponseWriter, r *http.Request) {
			m := received(r)
			switch {
			case r.Method == http.MethodGet:
				w.Header().Set("Content-Type", "text/event-stream")
				_ = http.NewResponseController(w).Flush()
				<-asked
				for _, id := range []string{`"5"`, `99`, `""`} {
					fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"x\":1}}\n\n", id)
				}
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			case !begins(w, r, m, "s"):
				w.Header().Set("Content-Type", "text/event-stream")
				_ = http.NewResponseController(w).Flush()
				close(asked)
				<-r.Context().Done()
			}
		})
		h.initialized()
		synctest.Wait()
		if got := h.answered("5", "tools/list", `{}`); got.Error != nil || string(got.ID) != "5" {
			t.Errorf("%s", got.raw)
		}
		synctest.Wait()
		h.nothingMore()
		if n := strings.Count(h.stderr(), "belongs to no request"); n != 2 {
			t.Errorf("%d answers logged: %s", n, h.stderr())
		}
	})
}

// A server that does not answer initialize does not keep a second try from it.
func TestInitializeTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		h := connectURL(t, func(w http.ResponseWriter, r *http.Request) {
			m := received(r)
			if n.Add(1) == 1 {
				<-r.Context().Done()
				return
			}
			begins(w, r, m, "s")
		})
		h.ask(`"a"`, "initialize", initialize)
		begun := time.Now()
		if got := h.answered(`"b"`, "initialize", initialize); got.Error != nil || time.Since(begun) > server.InitLimit {
			t.Errorf("%s after %v", got.raw, time.Since(begun))
		}
	})
}

// SPEC 16.8. The response to a message that needs no answer keeps no connection open, however it goes on.
func TestResponseToANotificationEnds(t *testing.T) {
	messages := map[string]string{
		"a notification": `{"jsonrpc":"2.0","method":"x/notify"}`,
		"an answer":      `{"jsonrpc":"2.0","id":7,"result":{"marker":"x/notify"}}`,
	}
	for name, tc := range map[string]struct {
		status            int
		kind, begin, more string
		logged            string
	}{
		"events":            {200, "text/event-stream", "", ": more\n\n", ""},
		"messages":          {200, "text/event-stream", "", "data: {\"jsonrpc\":\"2.0\",\"method\":\"x/hello\"}\n\n", ""},
		"JSON":              {200, "application/json", "[", "1,", ""},
		"white space":       {202, "application/json", "", " ", ""},
		"nothing":           {202, "", "", "", ""},
		"nothing, declared": {200, "text/event-stream", "", "", ""},
		"refused in JSON":   {400, "application/json", `["no such thing"`, ",1", "did not accept"},
		"refused in events": {400, "text/event-stream", "", ": more\n\n", ""},
		"refused":           {400, "", "", "", "400 Bad Request"},
	} {
		for what, message := range messages {
			bubble(t, name+" after "+what, func(t *testing.T) {
				ended := make(chan time.Duration, 1)
				h := connectURL(t, func(w http.ResponseWriter, r *http.Request) {
					m := received(r)
					switch {
					case strings.Contains(string(m.Raw), "x/notify"):
						begun := time.Now()
						w.Header().Set("Content-Type", tc.kind)
						w.WriteHeader(tc.status)
						for text := tc.begin; ; text = tc.more {
							_, _ = io.WriteString(w, text)
							_ = http.NewResponseController(w).Flush()
							if !pause(r.Context(), time.Second) {
								break
							}
						}
						ended <- time.Since(begun)
					case strings.Contains(string(m.Params), `"ask"`):
						w.Header().Set("Content-Type", "text/event-stream")
						fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n\n", m.ID)
					case !begins(w, r, m, ""):
						fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
					}
				})
				h.initialized()
				h.call("2", "ask", `{}`) // so that an answer is forwarded
				h.send(message)
				select {
				case took := <-ended:
					if took > remote.AcceptLimit {
						t.Errorf("ended after %v", took)
					}
				case <-time.After(2 * remote.AcceptLimit):
					t.Error("the response still holds a connection")
				}
				synctest.Wait()
				if refused := strings.Contains(h.stderr(), "did not accept"); refused != (tc.logged != "") || !strings.Contains(h.stderr(), tc.logged) {
					t.Error(h.stderr())
				}
			})
		}
	}
}
