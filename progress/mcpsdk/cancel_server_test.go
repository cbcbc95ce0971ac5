package mcpsdk_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A stopper tells how the calls of "silent" end.
type stopper struct {
	started chan struct{}
	ended   chan timeout.Snapshot
}

func newStopper(s *mcp.Server, limits timeout.Config) *stopper {
	st := &stopper{make(chan struct{}, 8), make(chan timeout.Snapshot, 8)}
	mcpsdk.Install(s, nil, mcpsdk.WithOptions(limits, timeout.WithHooks(timeout.Hooks{
		Started:  func(context.Context, timeout.Snapshot) { st.started <- struct{}{} },
		Finished: func(_ context.Context, s timeout.Snapshot) { st.ended <- s },
	})))
	return st
}

func (st *stopper) endsWith(t *testing.T, code int) {
	t.Helper()
	select {
	case s := <-st.ended:
		if timeout.ExitCode(s.Err) != code {
			t.Errorf("ended by %v, want exit code %d", s.Err, code)
		}
	case <-time.After(slack):
		t.Error("the tool runs on")
	}
}

// SPEC 3.11, 7.8: a client that cancels a call stops its tool, on every transport that can
// carry a cancellation. That is not so for stateless HTTP before 2026-07-28: it comes in a
// request of its own, which knows no calls; here WrapHTTP sees the client hang up.
func TestCancelStopsTheTool(t *testing.T) {
	for name, connect := range links {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			st := newStopper(s, timeout.Config{})
			cs := connect(t, s, nil)
			ctx, cancel := context.WithCancel(context.Background())
			go func() { <-st.started; cancel() }()
			if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "silent"}); err == nil {
				t.Error("the call was answered")
			}
			st.endsWith(t, timeout.ExitAborted)
		})
	}
}

// A client that goes away without a word stops its tools, but for stateful HTTP, where it
// may come back.
func TestDisconnectStopsTheTool(t *testing.T) {
	for name, connect := range links {
		if name == "HTTP" || name == "HTTP, JSON" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := newServer()
			st := newStopper(s, timeout.Config{})
			cs := connect(t, s, nil)
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = cs.CallTool(ctx, &mcp.CallToolParams{Name: "silent"})
			}()
			<-st.started
			hangUp(t, cs)
			st.endsWith(t, timeout.ExitAborted)
			cancel() // not every client notices
			<-done
		})
	}
}

// A client that ends its session stops the tools of that session, and does not wait for
// them. One that may not end it stops nothing.
func TestEndOfSessionStopsTheTool(t *testing.T) {
	s := newServer()
	st := newStopper(s, timeout.Config{})
	web := httptest.NewServer(mcpsdk.WrapHTTP(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)))
	defer web.Close()
	end := func(id string) int {
		req, err := http.NewRequest(http.MethodDelete, web.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Mcp-Session-Id", id)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	call := func() (id string) {
		cs := newClient(t, nil, protocol2025, &mcp.StreamableClientTransport{Endpoint: web.URL})
		go func() { _, _ = cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "silent"}) }()
		<-st.started
		return cs.ID()
	}
	one, other := call(), call()
	if code := end("nobody's"); code != http.StatusNotFound {
		t.Errorf("status %d", code)
	}
	for _, id := range []string{one, other} {
		if len(st.ended) != 0 {
			t.Error("a tool of another session was stopped")
		}
		if code := end(id); code != http.StatusNoContent {
			t.Errorf("status %d", code)
		}
		st.endsWith(t, timeout.ExitAborted)
	}
}

// SPEC 3.11: when the client's process dies, the server's tools are stopped and it exits.
func TestClientCrash(t *testing.T) {
	cmd := child("unlimited")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	told, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(2*slack, func() { _ = cmd.Process.Kill() })
	defer stuck.Stop()
	_, _ = io.WriteString(in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`+"\n"+
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"+
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"silent"}}`+"\n")
	var lines []string
	for r := bufio.NewScanner(told); r.Scan(); {
		lines = append(lines, r.Text())
		if len(lines) == 1 { // a dead process holds neither end
			in.Close()
			out.Close()
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff([]string{"started silent", "finished silent 130"}, lines); d != "" {
		t.Error(d)
	}
}

// Tools that ignore everything do not starve a server.
func TestDeafTools(t *testing.T) {
	t.Parallel()
	for name, connect := range links {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			release := make(chan struct{})
			defer close(release)
			s.AddTool(&mcp.Tool{Name: "deaf", InputSchema: anyInput}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				<-release
				return nil, nil
			})
			limits := timeout.Config{Total: 50 * time.Millisecond, Grace: 50 * time.Millisecond}
			mcpsdk.Install(s, &policy.Policy{Tools: map[string]policy.Tool{"deaf": {Limits: &limits}}})
			cs := connect(t, s, nil)
			answers := make(chan *mcp.CallToolResult)
			for range 20 {
				go func() { answers <- call(t, cs, "deaf", nil) }()
			}
			if got := texts(call(t, cs, "noop", nil)); got[0] != "done" {
				t.Error(got)
			}
			for range 20 {
				select {
				case res := <-answers:
					if o := outcome(res); !res.IsError || o["abandoned"] != true {
						t.Errorf("outcome %v", o)
					}
				case <-time.After(slack):
					t.Fatal("a deaf tool holds up its caller")
				}
			}
		})
	}
}
