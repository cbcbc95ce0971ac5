package mcpgo_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
)

// What a client sees of a response is what it sees without WrapHTTP: the status, the headers of
// handlers around and of mcp-go, and the kind of the body.
func TestWrapHTTPKeepsTheResponse(t *testing.T) {
	type response struct {
		Status                 int
		Type, Origin, FromOuts string
	}
	for _, tc := range []struct {
		name, method, session, body string
		want                        response
	}{
		{"JSON", "POST", "", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"noop"}}`, response{200, "application/json", "https://example.com", "yes"}},
		{"events", "POST", "", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"report","arguments":{"lingerMs":50},"_meta":{"progressToken":1}}}`,
			response{200, "text/event-stream", "https://example.com", "yes"}},
		{"accepted", "POST", "", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, response{202, "", "https://example.com", "yes"}},
		{"no session", "POST", "mcp-session-0", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, response{404, "text/plain; charset=utf-8", "https://example.com", "yes"}},
		{"no JSON", "POST", "", `nonsense`, response{400, "application/json", "https://example.com", "yes"}},
		{"method", "PUT", "", "", response{404, "text/plain; charset=utf-8", "https://example.com", "yes"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, wrap := range []func(http.Handler) http.Handler{mcpgo.WrapHTTP, func(h http.Handler) http.Handler { return h }} {
				h := wrap(server.NewStreamableHTTPServer(newServer(), server.WithStreamableHTTPCORS(server.WithCORSAllowedOrigins("https://example.com"))))
				ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("From-Outside", "yes")
					h.ServeHTTP(w, r)
				}))
				defer ts.Close()
				req, err := http.NewRequestWithContext(soon(t), tc.method, ts.URL, strings.NewReader(tc.body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Origin", "https://example.com")
				if tc.session == "" {
					tc.session = "mcp-session-6ba7b810-9dad-41d1-80b4-00c04fd430c8"
				}
				req.Header.Set("Mcp-Session-Id", tc.session)
				resp, err := ts.Client().Do(req)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				got := response{resp.StatusCode, resp.Header.Get("Content-Type"), resp.Header.Get("Access-Control-Allow-Origin"), resp.Header.Get("From-Outside")}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

// What is not a stream, or no server of Streamable HTTP, passes.
func TestWrapHTTPLeavesOthersAlone(t *testing.T) {
	h := mcpgo.WrapHTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); string(body) != "hello" {
			t.Errorf("body %q", body)
		}
		w.Header().Set("X", "y") // and nothing is written
	}))
	r := httptest.NewRequestWithContext(context.Background(), "POST", "/", strings.NewReader("hello"))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 200 || w.Header().Get("X") != "y" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	r.Body = io.NopCloser(strings.NewReader("hello"))
	plain := struct{ http.ResponseWriter }{httptest.NewRecorder()} // no Flusher
	h.ServeHTTP(plain, r)
	if plain.Header().Get("X") != "y" {
		t.Errorf("%v", plain.Header())
	}
}
