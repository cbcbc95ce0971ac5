package mcpgo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
)

// What a client sees of a response is what it sees without WrapHTTP: the status, the headers of
// handlers around and of mcp-go, and the kind of the body.
func TestWrapHTTPKeepsTheResponse(t *testing.T) {
	t.Parallel()
	type response struct {
		Status                 int
		Type, Origin, FromOuts string
	}
	for _, tc := range []struct {
		name, method, session, body string
		want                        response
	}{
		{"JSON", "POST", "", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"noop"}}`, response{200, "application/json", "https://example.com", "yes"}},
		{"events", "POST", "", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"report","arguments":{"lingerMs":500},"_meta":{"progressToken":1}}}`,
			response{200, "text/event-stream", "https://example.com", "yes"}},
		{"accepted", "POST", "", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, response{202, "", "https://example.com", "yes"}},
		{"no session", "POST", "mcp-session-0", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, response{404, "text/plain; charset=utf-8", "https://example.com", "yes"}},
		{"no JSON", "POST", "", `nonsense`, response{400, "application/json", "https://example.com", "yes"}},
		{"method", "PUT", "", "", response{404, "text/plain; charset=utf-8", "https://example.com", "yes"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, wrap := range []func(http.Handler) http.Handler{mcpgo.WrapHTTP, func(h http.Handler) http.Handler { return h }} {
				h := wrap(server.NewStreamableHTTPServer(newServer(), server.WithStreamableHTTPCORS(server.WithCORSAllowedOrigins("https://example.com"))))
				ts := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("From-Outside", "yes")
					h.ServeHTTP(w, r)
				}))
				var complaints bytes.Buffer
				ts.Config.ErrorLog = log.New(&complaints, "", 0)
				ts.Start()
				defer func() {
					if ts.Close(); complaints.Len() > 0 {
						t.Error(complaints.String())
					}
				}()
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

// An answer that is no stream, or not of a server of Streamable HTTP, passes.
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

// With an event store, progress is recorded as ever, so that a client can ask for what comes after
// it, once WrapHTTP has seen that there is one.
func TestWrapHTTPRecordedEvents(t *testing.T) {
	t.Parallel()
	ts := httptest.NewServer(mcpgo.WrapHTTP(server.NewStreamableHTTPServer(newServer(), server.WithEventStore(server.NewInMemoryEventStore()))))
	defer ts.Close()
	for i := range 3 {
		resp := post(t, http.DefaultClient, ts.URL, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"report","arguments":{"n":3,"everyMs":20,"lingerMs":500},"_meta":{"progressToken":1}}}`)
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if ids, all := bytes.Count(body, []byte("id: ")), bytes.Count(body, []byte("event: ")); i > 0 && ids != all || all < 2 { // updates that wait for each other become one
			t.Errorf("%d events, %d of them recorded:\n%s", all, ids, body)
		}
	}
}

// The wire is not that of a server which a tool runs with its own context.
func TestWrapHTTPNested(t *testing.T) {
	t.Parallel()
	inner := server.NewStreamableHTTPServer(newServer())
	s := newServer()
	s.AddTool(mcp.NewTool("outer"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		r := httptest.NewRequestWithContext(ctx, "POST", "/", strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"report","arguments":{"lingerMs":500},"_meta":{"progressToken":"inner"}}}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Mcp-Session-Id", "mcp-session-6ba7b810-9dad-41d1-80b4-00c04fd430c8")
		w := httptest.NewRecorder()
		r.Host = "localhost"
		inner.ServeHTTP(w, r)
		if body := w.Body.String(); !strings.Contains(body, `"progressToken":"inner"`) || !strings.Contains(body, "done") {
			t.Errorf("inner stream: %s", body)
		}
		return mcp.NewToolResultText("done"), nil
	})
	ts := httptest.NewServer(mcpgo.WrapHTTP(server.NewStreamableHTTPServer(s)))
	defer ts.Close()
	for _, m := range events(t, ts.URL, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"outer","_meta":{"progressToken":"outer"}}}`) {
		if strings.Contains(string(m.Params), "inner") {
			t.Errorf("outer stream: %s", m.Params)
		}
	}
}

// A task's notification does not begin a stream of events into the answer with its handle.
func TestWrapHTTPTask(t *testing.T) {
	s := newServer()
	s.AddTool(mcp.NewTool("task", mcp.WithTaskSupport(mcp.TaskSupportOptional)), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range 20 {
			progress.Report(ctx, progress.Update{Progress: float64(i + 1)})
			time.Sleep(ms)
		}
		return mcp.NewToolResultText("done"), nil
	})
	ts := httptest.NewServer(mcpgo.WrapHTTP(server.NewStreamableHTTPServer(s, server.WithStateLess(true))))
	defer ts.Close()
	for i := range 20 {
		resp := post(t, http.DefaultClient, ts.URL, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"task","task":{},"_meta":{"progressToken":1}}}`, i))
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(body, []byte("taskId")) || json.Valid(body) != (resp.Header.Get("Content-Type") == "application/json") {
			t.Fatalf("try %d, %s: %s", i, resp.Header.Get("Content-Type"), body)
		}
	}
}
