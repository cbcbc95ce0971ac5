package mcpgo_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

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

// SPEC 7.9: a person may take longer than the idle limit; what is awaited is said; and the
// answer of the tool when nobody answers.
func TestElicit(t *testing.T) {
	const expired = "Command timed out waiting for approval. Consider approving faster or configuring a longer timeout."
	for _, l := range named("stdio 2025", "http 2025", "serve 2025", "wrapped 2025", "wrapped 2025 event store") {
		for _, tc := range []struct {
			name  string
			after time.Duration
			limit int
			want  string
		}{
			{"answers", 300 * ms, 20000, "accept"},
			{"does not answer", 2 * time.Second, 150, expired},
		} {
			t.Run(l.name+" "+tc.name, func(t *testing.T) {
				c := l.connect(t, newServer(), client.WithElicitationHandler(answerer{tc.after}))
				got := record(c)
				res, err := c.CallTool(soon(t), call{tool: "elicit", args: map[string]any{"limitMs": tc.limit}, token: "t"}.request())
				if err != nil {
					t.Fatal(err)
				}
				v := view(t, res)
				if v.Texts[0] != tc.want || v.IsError != (tc.want == expired) {
					t.Errorf("%+v", v)
				}
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

// events posts a message and returns the messages that come in answer.
func events(t *testing.T, url, body string) (all []message) {
	t.Helper()
	req, err := http.NewRequestWithContext(soon(t), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Mcp-Session-Id", "mcp-session-6ba7b810-9dad-41d1-80b4-00c04fd430c8")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for sc := bufio.NewScanner(resp.Body); sc.Scan(); {
		if data, ok := strings.CutPrefix(sc.Text(), "data: "); ok {
			var m message
			if err := json.Unmarshal([]byte(data), &m); err != nil {
				t.Fatalf("%q: %v", data, err)
			}
			all = append(all, m)
		}
	}
	return all
}

// SPEC 7.9: a question that has expired is taken back at the client, before the tool's answer.
func TestQuestionIsCancelled(t *testing.T) {
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
