package mcpgo_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
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

// SPEC 7.9: a person may take longer than the idle limit; the client learns what is awaited; and
// the answer of the tool when nobody answers.
func TestElicit(t *testing.T) {
	t.Parallel()
	const expired = "Command timed out waiting for approval. Consider approving faster or configuring a longer timeout."
	for _, l := range named("stdio 2025", "http 2025", "serve 2025", "wrapped 2025", "wrapped 2025 event store") {
		for _, tc := range []struct {
			name  string
			after time.Duration
			limit int
			want  string
		}{
			{"answers", 2600 * ms, 20000, "accept"},
			{"does not answer", 10 * time.Second, 2000, expired},
		} {
			t.Run(l.name+" "+tc.name, func(t *testing.T) {
				t.Parallel()
				c := l.connect(t, newServer(), client.WithElicitationHandler(answerer{tc.after}))
				got := record(c)
				l.until(func() bool { return len(got.of("t")) > 0 }, func() {
					res, err := c.CallTool(soon(t), call{tool: "elicit", args: map[string]any{"limitMs": tc.limit}, token: "t"}.request())
					if err != nil {
						t.Fatal(err)
					}
					v := view(t, res)
					if v.Texts[0] != tc.want || v.IsError != (tc.want == expired) {
						t.Errorf("%+v", v)
					}
				})
				want := fmt.Sprintf("Waiting for approval of rm -r build (up to %v)", time.Duration(tc.limit)*ms)
				if n := got.of("t"); len(n) == 0 || n[0].Message != want {
					t.Errorf("%v, want %q", n, want)
				}
			})
		}
	}
	if _, err := mcpgo.Elicit(context.Background(), mcp.ElicitationRequest{}); err != server.ErrNoActiveSession {
		t.Errorf("without a server: %v", err)
	}
}

// sampler answers for its model after a while.
type sampler struct{ after time.Duration }

func (a sampler) CreateMessage(ctx context.Context, _ mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	select {
	case <-time.After(a.after):
	case <-ctx.Done():
	}
	return &mcp.CreateMessageResult{Model: "a model", SamplingMessage: mcp.SamplingMessage{Role: mcp.RoleAssistant, Content: mcp.NewTextContent("x")}}, nil
}

// SPEC 7.10: the client's model may take longer than the idle limit, and has a limit of its own.
func TestSample(t *testing.T) {
	t.Parallel()
	for _, l := range named("stdio 2025", "serve 2025") {
		for _, tc := range []struct {
			name         string
			after, limit time.Duration
			want, said   string
		}{
			{"answers", 2600 * ms, slack, "a model", "Waiting for an answer of the model (up to 20s)"},
			{"does not answer", 10 * time.Second, 2 * time.Second, "Command timed out waiting for an answer of the model. Consider configuring a longer timeout.", "Waiting for an answer of the model (up to 2s)"},
		} {
			t.Run(l.name+" "+tc.name, func(t *testing.T) {
				t.Parallel()
				s := newServer()
				s.EnableSampling()
				s.AddTool(mcp.NewTool("elicit"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) { // it has an idle limit of 2.2 s
					res, err := mcpgo.Sample(ctx, mcp.CreateMessageRequest{CreateMessageParams: mcp.CreateMessageParams{MaxTokens: 1}}, progress.WithLimits(1, tc.limit))
					if err != nil {
						return nil, err
					}
					return mcp.NewToolResultText(res.Model), nil
				})
				c := l.connect(t, s, client.WithSamplingHandler(sampler{tc.after}))
				got := record(c)
				res, err := c.CallTool(soon(t), call{tool: "elicit", token: "t"}.request())
				if err != nil {
					t.Fatal(err)
				}
				if v := view(t, res); v.Texts[0] != tc.want || v.IsError == (tc.want == "a model") {
					t.Errorf("%+v", v)
				}
				if n := got.of("t"); len(n) == 0 || n[0].Message != tc.said {
					t.Errorf("%v, want %q", n, tc.said)
				}
			})
		}
	}
	if _, err := mcpgo.Sample(context.Background(), mcp.CreateMessageRequest{}); err != server.ErrNoActiveSession {
		t.Errorf("without a server: %v", err)
	}
}

// SPEC 7.9: a tool that returns its questions is called again with the answers, whatever the
// protocol. Where the server has to ask, the person may take longer than the idle limit, and no
// longer than the limit of the wait; the client hears what is awaited.
func TestReturnedQuestions(t *testing.T) {
	t.Parallel()
	const expired = "Command timed out waiting for approval. Consider approving faster or configuring a longer timeout."
	for _, tc := range []struct {
		name  string
		after time.Duration
		limit time.Duration
		n     int
		want  string
		said  string
	}{
		{"answered", 2600 * ms, slack, 1, "1 accept asked", "Waiting for approval of rm -r build (up to 20s)"},
		{"two, answered", 2600 * ms, slack, 2, "2 accept asked", "Waiting for approval of git push; rm -r build (up to 20s)"},
		{"not answered", 10 * time.Second, 2 * time.Second, 1, expired, "Waiting for approval of rm -r build (up to 2s)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			links := named("stdio 2025", "serve 2025", "http 2025", "wrapped 2025")
			if tc.want != expired { // since 2026-07-28 the client asks, and no limit of the server runs
				links = append(links, named("serve 2026", "wrapped 2026")...)
			}
			each(t, links, func(t *testing.T, l link) {
				c := l.connect(t, newServer(mcpgo.WithAwait(progress.WithLimits(tc.limit, tc.limit))), client.WithElicitationHandler(answerer{tc.after}))
				got := record(c)
				l.until(func() bool { return len(got.of("t")) > 0 }, func() {
					res, err := c.CallTool(soon(t), call{tool: "question", args: map[string]any{"n": tc.n}, token: "t"}.request())
					if err != nil {
						t.Fatal(err)
					}
					if v := view(t, res); v.Texts[0] != tc.want || v.IsError != (tc.want == expired) {
						t.Errorf("%+v", v)
					}
				})
				if n := got.of("t"); !l.modern && (len(n) == 0 || n[0].Message != tc.said) {
					t.Errorf("%v, want %q", n, tc.said)
				}
			})
		})
	}
}

// A tool that is never content with the answers comes to an end.
func TestEndlessQuestions(t *testing.T) {
	c := named("serve 2025")[0].connect(t, newServer(), client.WithElicitationHandler(answerer{}))
	_, err := c.CallTool(soon(t), call{tool: "endless"}.request())
	if err == nil || err.Error() != "internal error: mcpgo: the tool asks for input more than 10 times" {
		t.Errorf("%v", err)
	}
}

// From 2026-07-28 on Elicit fails at once, with an error that says why.
func TestElicitSince2026(t *testing.T) {
	c := named("serve 2026")[0].connect(t, newServer(), client.WithElicitationHandler(answerer{}))
	_, err := c.CallTool(soon(t), call{tool: "elicit"}.request())
	if err == nil || !strings.Contains(err.Error(), server.ErrServerInitiatedRequestUnsupported.Error()) {
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
			progress.WithLimits(60*ms, 60*ms))
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
