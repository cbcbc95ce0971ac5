package mcpgo_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
)

// answerer answers elicitations after a while.
type answerer struct{ after time.Duration }

func (a answerer) Elicit(ctx context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	select {
	case <-time.After(a.after):
	case <-ctx.Done():
	}
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionAccept, Content: map[string]any{}}}, nil
}

// A tool that is never content with the answers comes to an end.
func TestEndlessQuestions(t *testing.T) {
	c := named("serve 2025")[0].connect(t, newServer(), client.WithElicitationHandler(answerer{}))
	_, err := c.CallTool(soon(t), call{tool: "endless"}.request())
	if err == nil || err.Error() != "internal error: mcpgo: the tool asks for input more than 10 times" {
		t.Errorf("%v", err)
	}
}

// events posts a message and returns the messages that come in answer.
func events(t *testing.T, url, body string) []message {
	t.Helper()
	return read(t, post(t, http.DefaultClient, url, body))
}

func post(t *testing.T, c *http.Client, url, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(soon(t), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Mcp-Session-Id", "mcp-session-6ba7b810-9dad-41d1-80b4-00c04fd430c8")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// read returns the messages of an answer. It calls each with one as soon as that has come.
func read(t *testing.T, resp *http.Response, each ...func(message)) (all []message) {
	t.Helper()
	defer resp.Body.Close()
	sc := bufio.NewScanner(resp.Body)
	for sc.Buffer(nil, 1<<26); sc.Scan(); {
		if data, ok := strings.CutPrefix(sc.Text(), "data: "); ok {
			var m message
			if err := json.Unmarshal([]byte(data), &m); err != nil {
				t.Fatalf("%q: %v", data, err)
			}
			all = append(all, m)
			for _, f := range each {
				f(m)
			}
		}
	}
	return all
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

// SPEC 7.9: a question that has expired is taken back at the client, before the tool's answer.
func TestQuestionIsCancelled(t *testing.T) {
	t.Parallel()
	const ask = `{"jsonrpc":"2.0","id":"ask","method":"tools/call","params":{"name":"elicit","arguments":{"limitMs":60}}}`
	overHTTP := func(opts ...server.StreamableHTTPOption) func(t *testing.T) []message {
		return func(t *testing.T) []message {
			ts := httptest.NewServer(mcpgo.WrapHTTP(server.NewStreamableHTTPServer(newServer(), opts...)))
			defer ts.Close()
			events(t, ts.URL, ask) // with an event store, the first is how WrapHTTP knows
			return events(t, ts.URL, ask)
		}
	}
	for _, tc := range []struct {
		name string
		ask  func(t *testing.T) []message
	}{
		{"stdio", func(t *testing.T) (all []message) {
			r := newRaw(t, newServer())
			for range 2 {
				all = nil
				for r.write(ask); len(all) == 0 || all[len(all)-1].ID != "ask"; {
					all = append(all, r.read())
				}
			}
			return all
		}},
		{"HTTP", overHTTP()},
		{"HTTP, stateless", overHTTP(server.WithStateLess(true))},
		{"HTTP, event store", overHTTP(server.WithEventStore(server.NewInMemoryEventStore()))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var what []string
			var id any
			for _, m := range tc.ask(t) {
				what = append(what, m.Method)
				switch m.Method {
				case "elicitation/create":
					id = m.ID
				case "notifications/cancelled":
					var p struct {
						RequestID any
						Reason    string
					}
					if err := json.Unmarshal(m.Params, &p); err != nil || p.RequestID != id || p.Reason != "Tool exceeded wall-clock limit of 0.06s." {
						t.Errorf("%s, want it for the request %v", m.Params, id)
					}
				}
			}
			if diff := cmp.Diff([]string{"elicitation/create", "notifications/cancelled", ""}, what); diff != "" || id == nil {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A question that a client which does not read keeps from going out until it has expired is taken
// back right behind it.
func TestLateQuestionIsCancelled(t *testing.T) {
	s := newServer()
	begun, expired, end := make(chan bool), make(chan bool), make(chan bool)
	s.AddTool(mcp.NewTool("late"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		progress.Report(ctx, progress.Update{Message: strings.Repeat("x", 1<<20)}) // more than all buffers on the way hold
		<-begun
		_, err := mcpgo.Elicit(ctx, mcp.ElicitationRequest{Params: mcp.ElicitationParams{Message: "?", RequestedSchema: map[string]any{"type": "object"}}},
			progress.Wait{Limit: 60 * ms, ProgressLimit: 60 * ms})
		close(expired)
		<-end
		return nil, err
	})
	url, client := narrow(t, mcpgo.WrapHTTP(server.NewStreamableHTTPServer(s)))
	resp := post(t, client, url, `{"jsonrpc":"2.0","id":"ask","method":"tools/call","params":{"name":"late","_meta":{"progressToken":1}}}`)
	close(begun) // the progress is on its way, and nobody reads it
	within(t, expired, "the expiry")
	stop := sync.OnceFunc(func() { close(end) })
	defer stop()
	var what []string
	for _, m := range read(t, resp, func(m message) {
		if m.Method == "notifications/cancelled" { // what would come behind the answer comes too late
			stop()
		}
	}) {
		if m.Method != "notifications/progress" {
			what = append(what, m.Method)
		}
	}
	if diff := cmp.Diff([]string{"elicitation/create", "notifications/cancelled", ""}, what); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Without a server there is nobody to ask.
func TestAskWithoutAServer(t *testing.T) {
	if _, err := mcpgo.Elicit(t.Context(), mcp.ElicitationRequest{}, progress.Wait{}); err != server.ErrNoActiveSession {
		t.Error(err)
	}
	if _, err := mcpgo.Sample(t.Context(), mcp.CreateMessageRequest{}, progress.Wait{}); err != server.ErrNoActiveSession {
		t.Error(err)
	}
}
