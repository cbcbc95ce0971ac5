package mcpgo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

const ms = time.Millisecond

// slack is how long a test waits for what must happen, on a busy machine.
const slack = 20 * time.Second

// never is a limit that must not fire in a test.
const never = time.Hour

const initialize = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// session is an id that mcp-go takes without a handshake.
const session = "mcp-session-6ba7b810-9dad-41d1-80b4-00c04fd430c8"

var hello = mcp.InitializeRequest{Params: mcp.InitializeParams{ClientInfo: mcp.Implementation{Name: "test"}}}

var errOwn = errors.New("no such file")

// silent is a tool that waits for its end.
func silent(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// newServer returns a server with one tool.
func newServer(tool server.ToolHandlerFunc, o *mcpgo.Options) *server.MCPServer {
	s := server.NewMCPServer("test", "1", server.WithToolCapabilities(false), server.WithElicitation())
	mcpgo.Install(s, o)
	s.AddTool(mcp.NewTool("tool"), tool)
	return s
}

// finishes keeps how executions end, and has no limits, nor those of the client.
func finishes(ended chan<- error) *mcpgo.Options {
	return &mcpgo.Options{Policy: &policy.Policy{Default: new(timeout.Config), ObserveOnly: true}, Hooks: timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) { ended <- s.Err }}}
}

func connect(t *testing.T, tr transport.Interface, modern bool, opts ...client.ClientOption) *client.Client {
	t.Helper()
	if !modern {
		opts = append(opts, client.WithProtocolVersion("2025-11-25"))
	}
	c := client.NewClient(tr, opts...)
	if err := c.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Initialize(t.Context(), hello); err != nil {
		t.Fatal(err)
	}
	if modern != mcp.IsModernProtocol(c.ProtocolVersion()) {
		t.Fatalf("speaks %s", c.ProtocolVersion())
	}
	return c
}

// overLines is the transport of a client to a server over lines, in a bubble. Its end is that of the test.
func overLines(t *testing.T, s *server.MCPServer) transport.Interface {
	ownQueue(s)
	std := server.NewStdioServer(s)
	std.SetErrorLogger(log.New(io.Discard, "", 0))
	in, out := sdktest.NewPipe(), sdktest.NewPipe()
	served := make(chan error, 1)
	go func() { served <- mcpgo.Serve(context.Background(), std, in, out, 0) }()
	t.Cleanup(func() { _, _ = in.Close(), out.Close(); <-served; time.Sleep(time.Hour) })
	return transport.NewIO(out, in, io.NopCloser(nil))
}

// callTool calls the tool, with a progress token unless that is nil.
func callTool(ctx context.Context, c *client.Client, name string, token any) (*mcp.CallToolResult, error) {
	r := mcp.CallToolRequest{Params: mcp.CallToolParams{Name: name}}
	if token != nil {
		r.Params.Meta = &mcp.Meta{ProgressToken: token}
	}
	return c.CallTool(ctx, r)
}

// post has a handler answer a message over HTTP, and returns the answer.
func post(h http.Handler, version, body string, header ...string) *http.Response {
	r := httptest.NewRequest(http.MethodPost, "http://localhost/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if r.Header.Set("Mcp-Protocol-Version", version); version == sdktest.Old {
		r.Header.Set("Mcp-Session-Id", session)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

type message struct {
	ID     any             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// overNet is the transport of a client to a server over HTTP, in memory. Its end is that of the test.
func overNet(t *testing.T, h http.Handler, opts ...transport.StreamableHTTPCOption) transport.Interface {
	n := sdktest.NewNet(h)
	c := n.Client()
	t.Cleanup(func() {
		n.End()
		c.CloseIdleConnections()
		time.Sleep(time.Hour)
	})
	tr, err := transport.NewStreamableHTTP("http://localhost/", append(opts, transport.WithHTTPBasicClient(c))...)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// aLine is a client of a server over lines, in a bubble: it writes lines, and returns what has come.
func aLine(t *testing.T, s *server.MCPServer, opts ...server.StdioOption) (write func(format string, args ...any), read func() []message) {
	ownQueue(s)
	std := server.NewStdioServer(s)
	for _, o := range opts {
		o(std)
	}
	std.SetErrorLogger(log.New(io.Discard, "", 0))
	in, out := sdktest.NewPipe(), sdktest.NewPipe()
	served := make(chan error, 1)
	go func() { served <- mcpgo.Serve(t.Context(), std, in, out, 0) }()
	var mu sync.Mutex
	var all []message
	done := make(chan bool)
	go func() {
		defer close(done)
		for d := json.NewDecoder(out); ; {
			var m message
			if d.Decode(&m) != nil {
				return
			}
			mu.Lock()
			all = append(all, m)
			mu.Unlock()
		}
	}()
	write = func(format string, args ...any) { _, _ = fmt.Fprintf(in, format+"\n", args...) }
	write("%s", initialize)
	synctest.Wait()
	t.Cleanup(func() {
		_ = in.Close()
		<-served
		_ = out.Close()
		<-done
		time.Sleep(time.Hour)
	})
	return write, func() []message {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

func within[T any](t *testing.T, c chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(slack):
		t.Fatalf("%s did not come", what)
	}
	return v
}

// The parts of a result that a test compares.
type result struct {
	Texts      []string
	IsError    bool
	Structured any
	Outcome    string // kind, exit code, the limit and the limits in ms
}

func view(t *testing.T, res *mcp.CallToolResult) result {
	t.Helper()
	v := result{IsError: res.IsError, Structured: res.StructuredContent}
	for _, c := range res.Content {
		v.Texts = append(v.Texts, c.(mcp.TextContent).Text)
	}
	if raw := res.Meta.GetMetaField(toolcall.OutcomeKey); raw != nil {
		data, _ := json.Marshal(raw)
		var o toolcall.Outcome
		if err := json.Unmarshal(data, &o); err != nil {
			t.Fatal(err)
		}
		v.Outcome = fmt.Sprint(o.Kind, " ", o.ExitCode, " ", o.Limit, " ", o.Total, " ", o.Idle)
		if o.Abandoned {
			v.Outcome += " abandoned"
		}
	}
	return v
}

// unlimited has no limits.
func unlimited() *request.Options {
	return &request.Options{Limits: new(request.Limits), PerMethod: map[string]request.Limits{}}
}
