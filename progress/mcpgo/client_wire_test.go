package mcpgo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/request"
)

// A transport that keeps the messages that it gets, and gives the answers that it was made
// with.
type fake struct {
	notify  func(mcp.JSONRPCNotification)
	sent    []transport.JSONRPCRequest
	notes   chan mcp.JSONRPCNotification
	answer  func(ctx context.Context, n int) error
	session string
	closed  int
}

func (f *fake) Start(context.Context) error { return nil }
func (f *fake) Close() error                { f.closed++; return nil }
func (f *fake) GetSessionId() string        { return f.session }
func (f *fake) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	f.sent = append(f.sent, r)
	if f.answer != nil {
		if err := f.answer(ctx, len(f.sent)); err != nil {
			return nil, err
		}
	}
	return &transport.JSONRPCResponse{ID: r.ID, Result: json.RawMessage(`{}`)}, nil
}
func (f *fake) SendNotification(_ context.Context, n mcp.JSONRPCNotification) error {
	f.notes <- n
	return nil
}
func (f *fake) SetNotificationHandler(h func(mcp.JSONRPCNotification)) { f.notify = h }

type bidi struct{ *fake }

func (bidi) SetRequestHandler(transport.RequestHandler) {}

type versioned struct{ *fake }

func (versioned) SetProtocolVersion(string) {}

type both struct {
	bidi
	versioned
	*fake
}

type command struct {
	*fake
	lost func(error)
}

func (*command) Stderr() io.Reader                        { return nil }
func (*command) RequiresLegacyProtocol() bool             { return true }
func (c *command) SetConnectionLostHandler(h func(error)) { c.lost = h }

type bidiCommand struct {
	bidi
	*command
	*fake
}
type versionedCommand struct {
	versioned
	*command
	*fake
}
type everything struct {
	bidi
	versioned
	*command
	*fake
}

type can struct{ Bidirectional, HTTP, Stderr, Legacy bool }

func canDo(t transport.Interface) (c can) {
	_, c.Bidirectional = t.(transport.BidirectionalInterface)
	_, c.HTTP = t.(transport.HTTPConnection)
	_, c.Stderr = client.GetStderr(client.NewClient(t))
	if l, ok := t.(interface{ RequiresLegacyProtocol() bool }); ok {
		c.Legacy = l.RequiresLegacyProtocol()
	}
	return c
}

// A wrapped transport can do what it could, and no more.
func TestNothingIsLostByWrapping(t *testing.T) {
	f := &fake{}
	cmd := &command{fake: f}
	http, _ := transport.NewStreamableHTTP("http://localhost")
	sse, _ := transport.NewSSE("http://localhost")
	for _, inner := range []transport.Interface{
		f, bidi{f}, versioned{f}, both{bidi{f}, versioned{f}, f}, cmd, bidiCommand{bidi{f}, cmd, f}, versionedCommand{versioned{f}, cmd, f},
		everything{bidi{f}, versioned{f}, cmd, f}, transport.NewStdio("x", nil), transport.NewCommand("x"), http, sse,
		transport.NewInProcessTransport(server.NewMCPServer("", "")), transport.NewLogging(http, nil),
	} {
		want := canDo(inner)
		for name, wrapped := range map[string]transport.Interface{
			"Limit": mcpgo.Limit(inner, nil), "all": mcpgo.Limit(inner, &request.Options{Retry: []string{"*"}, FollowTasks: true}),
		} {
			if diff := cmp.Diff(want, canDo(wrapped)); diff != "" {
				t.Errorf("%T in %s (-want +got):\n%s", inner, name, diff)
			}
		}
	}
	client.NewClient(mcpgo.Limit(cmd, unlimited())).OnConnectionLost(func(error) {})
	if cmd.lost == nil {
		t.Error("the handler of a lost connection did not arrive")
	}
	client.NewClient(mcpgo.Limit(f, unlimited())).OnConnectionLost(func(error) {})
}

// The token goes into what a request has, whatever that is, and nothing else changes.
func TestParams(t *testing.T) {
	type odd struct {
		Name string         `json:"name"`
		Meta map[string]any `json:"_meta,omitempty"`
	}
	for _, tc := range []struct {
		name   string
		params any
		want   string // TOKEN is the one that was put in
		own    any
	}{
		{"none", nil, `{"_meta":{"progressToken":"TOKEN"}}`, nil},
		{"call", mcp.CallToolParams{Name: "n", Arguments: map[string]any{"a": 1}}, `{"name":"n","arguments":{"a":1},"_meta":{"progressToken":"TOKEN"}}`, nil},
		{"call with own", mcp.CallToolParams{Name: "n", Meta: &mcp.Meta{ProgressToken: 7, AdditionalFields: map[string]any{"k": "v"}}}, `{"name":"n","_meta":{"k":"v","progressToken":"TOKEN"}}`, 7.0},
		{"fields", map[string]json.RawMessage{"name": json.RawMessage(`"n"`), "_meta": json.RawMessage(`{"k":9007199254740993}`)}, `{"_meta":{"k":9007199254740993,"progressToken":"TOKEN"},"name":"n"}`, nil},
		{"fields with own", map[string]json.RawMessage{"_meta": json.RawMessage(`{"progressToken":"abc"}`)}, `{"_meta":{"progressToken":"TOKEN"}}`, "abc"},
		{"struct", odd{Name: "n", Meta: map[string]any{"k": "v"}}, `{"_meta":{"k":"v","progressToken":"TOKEN"},"name":"n"}`, nil},
		{"null meta", map[string]json.RawMessage{"_meta": json.RawMessage(`null`)}, `{"_meta":{"progressToken":"TOKEN"}}`, nil},
		{"no object", []int{1}, `[1]`, nil},
		{"odd meta", map[string]int{"_meta": 1}, `{"_meta":1}`, nil},
		{"not JSON", make(chan int), `chan`, nil},
	} {
		sdktest.Bubble(t, tc.name, func(t *testing.T) {
			f := &fake{}
			before, _ := json.Marshal(tc.params)
			l := mcpgo.Limit(f, &request.Options{Limits: &request.Limits{Timeout: never, ResetOnProgress: true}, PerMethod: map[string]request.Limits{}})
			var got any = "no notification"
			l.SetNotificationHandler(func(n mcp.JSONRPCNotification) { got = n.Params.AdditionalFields["progressToken"] })
			if _, err := l.SendRequest(context.Background(), transport.JSONRPCRequest{ID: mcp.NewRequestId(int64(1)), Method: "m", Params: tc.params}); err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(f.sent[0].Params)
			if err != nil {
				raw = []byte(`chan`)
			}
			var p struct {
				Meta struct{ ProgressToken string } `json:"_meta"`
			}
			_ = json.Unmarshal(raw, &p)
			text := string(raw)
			if token := p.Meta.ProgressToken; token != "" {
				text = replace(text, token)
				f.notify(mcp.JSONRPCNotification{Notification: mcp.Notification{Method: "notifications/progress",
					Params: mcp.NotificationParams{AdditionalFields: map[string]any{"progressToken": token, "progress": 1.0}}}})
				synctest.Wait()
				if tc.own == nil {
					tc.own = "no notification"
				}
				if got != tc.own {
					t.Errorf("the handler has got %v, want %v", got, tc.own)
				}
			}
			if text != tc.want {
				t.Errorf("%s, want %s", text, tc.want)
			}
			if after, _ := json.Marshal(tc.params); string(after) != string(before) {
				t.Errorf("the caller's params are now %s", after)
			}
		})
	}
}

func replace(text, token string) string {
	quoted, _ := json.Marshal(token)
	for i := 0; i+len(quoted) <= len(text); i++ {
		if text[i:i+len(quoted)] == string(quoted) {
			return text[:i] + `"TOKEN"` + text[i+len(quoted):]
		}
	}
	return text
}

// SPEC 8.2: which server learns that a request is cancelled.
func TestCancelNotification(t *testing.T) {
	hang := func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }
	newFake := func(session string) *fake {
		return &fake{answer: hang, notes: make(chan mcp.JSONRPCNotification, 1), session: session}
	}
	task := mcp.CallToolParams{Task: &mcp.TaskParams{}}
	for _, tc := range []struct {
		name    string
		open    func(*fake) transport.Interface
		session string
		method  string
		params  any
		version string
		abort   bool
		want    bool
	}{
		{name: "stdio", open: func(f *fake) transport.Interface { return bidi{f} }, want: true},
		{name: "stdio, by the caller", open: func(f *fake) transport.Interface { return bidi{f} }, abort: true},
		{name: "sse", open: func(f *fake) transport.Interface { return versioned{f} }, want: true},
		{name: "sse, by the caller", open: func(f *fake) transport.Interface { return versioned{f} }, abort: true, want: true},
		{name: "http with a session", open: func(f *fake) transport.Interface { return both{bidi{f}, versioned{f}, f} }, session: "s", version: "2025-11-25", want: true},
		{name: "http with a session, by the caller", open: func(f *fake) transport.Interface { return both{bidi{f}, versioned{f}, f} }, session: "s", version: "2025-11-25", abort: true, want: true},
		{name: "http without", open: func(f *fake) transport.Interface { return both{bidi{f}, versioned{f}, f} }, version: "2025-11-25"},
		{name: "http 2026", open: func(f *fake) transport.Interface { return both{bidi{f}, versioned{f}, f} }, session: "s", version: "2026-07-28"},
		{name: "initialize", open: func(f *fake) transport.Interface { return f }, method: "initialize"},
		{name: "discover", open: func(f *fake) transport.Interface { return f }, method: "server/discover"},
		{name: "task", open: func(f *fake) transport.Interface { return f }, params: task},
		{name: "task in fields", open: func(f *fake) transport.Interface { return f }, params: map[string]any{"task": map[string]any{}}},
		{name: "no task in fields", open: func(f *fake) transport.Interface { return f }, params: map[string]any{"task": nil}, want: true},
	} {
		sdktest.Bubble(t, tc.name, func(t *testing.T) {
			f := newFake(tc.session)
			limits := request.Limits{Timeout: 30 * ms}
			if tc.abort { // which comes first then
				limits.Timeout = never
			}
			l := mcpgo.Limit(tc.open(f), &request.Options{Limits: &limits, PerMethod: map[string]request.Limits{}})
			if h, ok := l.(transport.HTTPConnection); ok {
				h.SetProtocolVersion(tc.version)
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if tc.abort {
				time.AfterFunc(10*ms, cancel)
			}
			if tc.method == "" {
				tc.method = "tools/call"
			}
			_, err := l.SendRequest(ctx, transport.JSONRPCRequest{ID: mcp.NewRequestId(int64(7)), Method: tc.method, Params: tc.params})
			if err == nil {
				t.Fatal("no error")
			}
			reason := "timeout of 30 ms without an answer" // SPEC 8.6
			if tc.abort {
				reason = "cancelled by the client"
			}
			select {
			case n := <-f.notes:
				data, _ := json.Marshal(n)
				if want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":%q,"requestId":7}}`, reason); !tc.want || string(data) != want {
					t.Errorf("%s, want %s", data, want)
				}
			case <-time.After(map[bool]time.Duration{true: slack, false: 50 * ms}[tc.want]):
				if tc.want {
					t.Error("nothing was sent")
				}
			}
		})
	}
}

// A server that does not read its input holds nobody up.
func TestServerThatDoesNotRead(t *testing.T) {
	in, _ := io.Pipe()
	_, out := io.Pipe()
	std := transport.NewIO(in, out, io.NopCloser(nil))
	l := mcpgo.Limit(std, &request.Options{Limits: &request.Limits{Timeout: 50 * ms}, PerMethod: map[string]request.Limits{}})
	if err := l.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	_, err := l.SendRequest(context.Background(), transport.JSONRPCRequest{JSONRPC: "2.0", ID: mcp.NewRequestId(int64(1)), Method: "ping"})
	if e := requestTimeout(t, err, "ping"); !e.Abandoned {
		t.Error(err)
	}
	_ = in.Close()
	_ = l.Close()
}

// Handlers of notifications that are no progress, and a handler that is taken away.
func TestOtherNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		l := mcpgo.Limit(f, unlimited())
		var got []string
		l.SetNotificationHandler(func(n mcp.JSONRPCNotification) { got = append(got, n.Method) })
		for _, m := range []string{"notifications/message", "notifications/progress", "notifications/tools/list_changed"} {
			f.notify(mcp.JSONRPCNotification{Notification: mcp.Notification{Method: m}})
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"notifications/message", "notifications/progress", "notifications/tools/list_changed"}, got); diff != "" {
			t.Error(diff)
		}
		l.SetNotificationHandler(nil)
		if f.notify != nil {
			t.Error("there is a handler still")
		}
	})
}

// SPEC 8.3: while a handler of notifications is slow, the reader goes on, until 1000 of them wait.
func TestWaitingNotificationsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, sent, release := new(fake), 0, make(chan bool)
		mcpgo.Limit(f, unlimited()).SetNotificationHandler(func(mcp.JSONRPCNotification) { <-release })
		go func() {
			for ; sent < 1100; sent++ {
				f.notify(mcp.JSONRPCNotification{Notification: mcp.Notification{Method: "m"}})
			}
		}()
		time.Sleep(time.Minute)
		if synctest.Wait(); sent < 1000 || sent > 1001 {
			t.Errorf("%d notifications were read", sent)
		}
		close(release)
		if synctest.Wait(); sent != 1100 {
			t.Errorf("%d notifications were read in all", sent)
		}
	})
}
