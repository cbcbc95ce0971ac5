package mcpgo_test

import (
	"bytes"
	stdcmp "cmp"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
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
		{"events", "POST", "", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool","_meta":{"progressToken":1}}}`,
			response{200, "text/event-stream", "https://example.com", "yes"}},
		{"accepted", "POST", "", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, response{202, "", "https://example.com", "yes"}},
		{"no session", "POST", "mcp-session-0", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, response{404, "text/plain; charset=utf-8", "https://example.com", "yes"}},
		{"no JSON", "POST", "", `nonsense`, response{400, "application/json", "https://example.com", "yes"}},
		{"method", "PUT", "", "", response{404, "text/plain; charset=utf-8", "https://example.com", "yes"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, wrap := range []func(http.Handler) http.Handler{mcpgo.WrapHTTP, func(h http.Handler) http.Handler { return h }} {
				synctest.Test(t, func(t *testing.T) {
					s := newServer(reports, nil)
					s.AddTool(mcp.NewTool("noop"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
						return mcp.NewToolResultText("done"), nil
					})
					h := wrap(server.NewStreamableHTTPServer(s, server.WithStreamableHTTPCORS(server.WithCORSAllowedOrigins("https://example.com"))))
					r := httptest.NewRequest(tc.method, "http://localhost/", strings.NewReader(tc.body))
					r.Header.Set("Content-Type", "application/json")
					r.Header.Set("Origin", "https://example.com")
					r.Header.Set("Mcp-Session-Id", stdcmp.Or(tc.session, session))
					w := httptest.NewRecorder()
					w.Header().Set("From-Outside", "yes")
					h.ServeHTTP(w, r)
					res := w.Result()
					got := response{res.StatusCode, res.Header.Get("Content-Type"), res.Header.Get("Access-Control-Allow-Origin"), res.Header.Get("From-Outside")}
					if diff := cmp.Diff(tc.want, got); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				})
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

// With an event store, progress is recorded as ever, so that a client can ask for what comes after it, once WrapHTTP has
// seen that there is one.
func TestWrapHTTPRecordedEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := mcpgo.WrapHTTP(server.NewStreamableHTTPServer(newServer(reports, nil), server.WithEventStore(server.NewInMemoryEventStore())))
		for i := range 3 {
			body, err := io.ReadAll(post(h, sdktest.Old, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool","_meta":{"progressToken":1}}}`).Body)
			if ids, all := bytes.Count(body, []byte("id: ")), bytes.Count(body, []byte("event: ")); err != nil || i > 0 && ids != all || all < 2 {
				t.Errorf("%d events, %d of them recorded:\n%s", all, ids, body)
			}
		}
	})
}

// reports is a tool that makes progress.
func reports(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	progress.Report(ctx, progress.Update{Progress: 1})
	time.Sleep(time.Minute)
	return mcp.NewToolResultText("done"), nil
}

// The wire is not that of a server which a tool runs with its own context, and neither are its ids.
func TestWrapHTTPNested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var within, around *toolcall.Call
		inner := server.NewStreamableHTTPServer(newServer(func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			within = toolcall.FromContext(ctx)
			return reports(ctx, r)
		}, nil))
		h := mcpgo.WrapHTTP(server.NewStreamableHTTPServer(newServer(func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			around = toolcall.FromContext(ctx)
			r := httptest.NewRequestWithContext(ctx, "POST", "http://localhost/", strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"tool","_meta":{"progressToken":"inner"}}}`))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Mcp-Session-Id", session)
			w := httptest.NewRecorder()
			inner.ServeHTTP(w, r)
			if body := w.Body.String(); !strings.Contains(body, `"progressToken":"inner"`) || !strings.Contains(body, "done") {
				t.Errorf("inner stream: %s", body)
			}
			return mcp.NewToolResultText("done"), nil
		}, nil)))
		body, _ := io.ReadAll(post(h, sdktest.Old, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool","_meta":{"progressToken":"outer"}}}`).Body)
		if strings.Contains(string(body), "inner") || within.RequestID != "7" || around.RequestID != "1" {
			t.Errorf("outer stream of %q, around %q: %s", around.RequestID, within.RequestID, body)
		}
	})
}

// A standalone stream that ends takes no call of its session along, and neither a continuation.
func TestStreamBesideCalls(t *testing.T) {
	for name, continuation := range map[string]*mcpgo.Continuation{"call": nil, "continuation": {After: time.Second}} {
		sdktest.Bubble(t, name, func(t *testing.T) {
			ended := make(chan error, 1)
			o := finishes(ended)
			o.Continuation = continuation
			n := sdktest.NewNet(mcpgo.WrapHTTP(server.NewStreamableHTTPServer(newServer(reports, o))))
			hc := n.Client()
			ctx, hangUp := context.WithCancel(t.Context())
			defer hangUp()
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				r, _ := http.NewRequestWithContext(ctx, method, "http://localhost/", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool"}}`))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Mcp-Session-Id", session)
				if method == http.MethodGet {
					go func() {
						if res, err := hc.Do(r); err == nil {
							_, _ = io.Copy(io.Discard, res.Body)
						}
					}()
					synctest.Wait()
					continue
				}
				time.AfterFunc(10*time.Second, hangUp)
				res, err := hc.Do(r.WithContext(t.Context()))
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
			n.End()
			hc.CloseIdleConnections()
			time.Sleep(time.Hour)
		})
	}
}

// A tool that is never content with the answers comes to an end.
func TestEndlessQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return server.NewInputRequestBuilder("").Elicit("q", mcp.ElicitationParams{Message: "again", RequestedSchema: map[string]any{"type": "object"}}).ToolResult(), nil
		}, nil)
		c := connect(t, overLines(t, s), false, client.WithElicitationHandler(answering(func(context.Context, string) string { return "accept" })))
		if _, err := callTool(t.Context(), c, "tool", nil); err == nil || err.Error() != "internal error: mcpgo: the tool asks for input more than 10 times" {
			t.Error(err)
		}
	})
}

// narrow is a server whose connections, as those of client, hold little that the other side has not read.
func narrow(t *testing.T, h http.Handler) (url string, client *http.Client) {
	t.Helper()
	ts := httptest.NewUnstartedServer(h)
	ts.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(1 << 14)
		return ctx
	}
	ts.Start()
	t.Cleanup(ts.Close)
	own := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			err = c.(*net.TCPConn).SetReadBuffer(1 << 14)
		}
		return c, err
	}}
	t.Cleanup(own.CloseIdleConnections)
	return ts.URL, &http.Client{Transport: own}
}

// A question that a client which does not read keeps from going out until it has expired is taken
// back right behind it.
func TestLateQuestionIsCancelled(t *testing.T) {
	begun, expired, end := make(chan bool), make(chan bool), make(chan bool)
	s := newServer(func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		progress.Report(ctx, progress.Update{Message: strings.Repeat("x", 1<<20)}) // more than all buffers on the way hold
		<-begun
		_, err := mcpgo.Elicit(ctx, mcp.ElicitationRequest{Params: mcp.ElicitationParams{Message: "?", RequestedSchema: map[string]any{"type": "object"}}},
			progress.Wait{Limit: 60 * ms, ProgressLimit: 60 * ms})
		close(expired)
		<-end
		return nil, err
	}, nil)
	url, client := narrow(t, mcpgo.WrapHTTP(server.NewStreamableHTTPServer(s)))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":"ask","method":"tools/call","params":{"name":"tool","_meta":{"progressToken":1}}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Mcp-Session-Id", session)
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	close(begun) // the progress is on its way, and nobody reads it
	within(t, expired, "the expiry")
	stop := sync.OnceFunc(func() { close(end) })
	defer stop()
	var what []string
	for m := range messagesOf(t, resp) {
		if m.Method == "notifications/cancelled" { // what would come behind the answer comes too late
			stop()
		}
		if m.Method != "notifications/progress" {
			what = append(what, m.Method)
		}
	}
	if diff := cmp.Diff([]string{"elicitation/create", "notifications/cancelled", ""}, what); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
