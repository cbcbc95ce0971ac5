package mcpgo_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// A link is a way in which a client reaches a server, and the protocol it speaks there.
type link struct {
	name   string
	modern bool
	open   func(*testing.T, *server.MCPServer) transport.Interface
}

var links = []link{
	{"stdio 2025", false, openStdio},
	{"stdio 2026", true, openStdio},
	{"sse 2025", false, openSSE},
	{"sse 2026", true, openSSE},
	{"http 2025", false, openHTTP()},
	{"http 2025 stateless", false, openHTTP(server.WithStateLess(true))},
	{"http 2025 event store", false, openHTTP(server.WithEventStore(server.NewInMemoryEventStore()))},
	{"http 2026", true, openHTTP()},
	{"serve 2025", false, openServe},
	{"serve 2026", true, openServe},
	{"wrapped 2025", false, openWrapped()},
	{"wrapped 2025 stateless", false, openWrapped(server.WithStateLess(true))},
	{"wrapped 2025 event store", false, openWrapped(server.WithEventStore(server.NewInMemoryEventStore()))},
	{"wrapped 2026", true, openWrapped()},
}

// process is a server of its own, with the tools of newServer; it takes a while to start.
var process = link{"process", true, openProcess}

var allLinks = append([]link{process}, links...)

// named returns some of the links.
func named(names ...string) (some []link) {
	for _, l := range allLinks {
		if slices.Contains(names, l.name) {
			some = append(some, l)
		}
	}
	return some
}

// each runs a test over the links, at once.
func each(t *testing.T, links []link, test func(*testing.T, link)) {
	for _, l := range links {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			test(t, l)
		})
	}
}

func (l link) connect(t *testing.T, s *server.MCPServer, opts ...client.ClientOption) *client.Client {
	t.Helper()
	return connect(t, l.open(t, s), l.modern, opts...)
}

func connect(t *testing.T, tr transport.Interface, modern bool, opts ...client.ClientOption) *client.Client {
	t.Helper()
	if modern {
		opts = append(opts, client.WithDiscoverTimeout(slack)) // by default it takes a server that is slow to start for an old one
	} else {
		opts = append(opts, client.WithProtocolVersion("2025-11-25"))
	}
	c := client.NewClient(tr, opts...)
	if err := c.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Initialize(soon(t), mcp.InitializeRequest{Params: mcp.InitializeParams{ClientInfo: mcp.Implementation{Name: "test"}}}); err != nil {
		t.Fatal(err)
	}
	if modern != mcp.IsModernProtocol(c.ProtocolVersion()) {
		t.Fatalf("speaks %s", c.ProtocolVersion())
	}
	return c
}

// soon is a context for what must not take long.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), slack)
	t.Cleanup(cancel)
	return ctx
}

// stdio is held while a server over stdio is open, since mcp-go has one session for all of the process.
var stdio sync.Mutex

// pipes serves s over pipes, and returns the client's ends. A second server waits until the test of
// the first is over, so no test may open two.
func pipes(t *testing.T, s *server.MCPServer) (in io.Reader, out io.WriteCloser) {
	t.Helper()
	return pipesTo(t, s, (*server.StdioServer).Listen)
}

// servePipes is pipes with Serve.
func servePipes(t *testing.T, s *server.MCPServer, opts ...server.StdioOption) (in io.Reader, out io.WriteCloser) {
	t.Helper()
	return pipesTo(t, s, func(std *server.StdioServer, ctx context.Context, in io.Reader, out io.Writer) error {
		for _, o := range opts {
			o(std)
		}
		return mcpgo.Serve(ctx, std, in, out, 0)
	})
}

func pipesTo(t *testing.T, s *server.MCPServer, serve func(*server.StdioServer, context.Context, io.Reader, io.Writer) error) (in io.Reader, out io.WriteCloser) {
	t.Helper()
	stdio.Lock()
	t.Cleanup(stdio.Unlock)
	fromClient, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	in, toClient, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	std := server.NewStdioServer(s)
	std.SetErrorLogger(log.New(io.Discard, "", 0))
	var wg sync.WaitGroup
	wg.Go(func() { _ = serve(std, context.Background(), fromClient, toClient) })
	t.Cleanup(func() {
		for _, f := range []io.Closer{out, in.(io.Closer)} {
			_ = f.Close()
		}
		wg.Wait()
		_, _ = fromClient.Close(), toClient.Close()
	})
	return in, out
}

func openServe(t *testing.T, s *server.MCPServer) transport.Interface {
	in, out := servePipes(t, s)
	return transport.NewIO(in, out, io.NopCloser(nil))
}

func openStdio(t *testing.T, s *server.MCPServer) transport.Interface {
	in, out := pipes(t, s)
	return transport.NewIO(in, out, io.NopCloser(nil))
}

func openProcess(*testing.T, *server.MCPServer) transport.Interface {
	return transport.NewStdio(os.Args[0], []string{serverEnv + "=1"})
}

func openSSE(t *testing.T, s *server.MCPServer) transport.Interface {
	t.Helper()
	ts := httptest.NewServer(server.NewSSEServer(s))
	t.Cleanup(ts.Close)
	t.Cleanup(ts.CloseClientConnections)
	tr, err := transport.NewSSE(ts.URL+"/sse", transport.WithHTTPClient(ts.Client()))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func openHTTP(opts ...server.StreamableHTTPOption) func(*testing.T, *server.MCPServer) transport.Interface {
	return openHandler(func(h http.Handler) http.Handler { return h }, opts)
}

func openWrapped(opts ...server.StreamableHTTPOption) func(*testing.T, *server.MCPServer) transport.Interface {
	return openHandler(mcpgo.WrapHTTP, opts)
}

func openHandler(wrap func(http.Handler) http.Handler, opts []server.StreamableHTTPOption) func(*testing.T, *server.MCPServer) transport.Interface {
	return func(t *testing.T, s *server.MCPServer) transport.Interface {
		t.Helper()
		h := server.NewStreamableHTTPServer(s, append(opts[:len(opts):len(opts)], server.WithStreamableHTTPLogger(slog.New(slog.DiscardHandler)))...)
		ts := httptest.NewServer(wrap(h))
		t.Cleanup(ts.Close)
		t.Cleanup(ts.CloseClientConnections)
		tr, err := transport.NewStreamableHTTP(ts.URL, transport.WithHTTPBasicClient(ts.Client()))
		if err != nil {
			t.Fatal(err)
		}
		return tr
	}
}

// A call of a tool.
type call struct {
	tool  string
	args  map[string]any
	token any
	meta  map[string]any
}

func (c call) request() mcp.CallToolRequest {
	r := mcp.CallToolRequest{Params: mcp.CallToolParams{Name: c.tool, Arguments: c.args}}
	if c.token != nil || c.meta != nil {
		r.Params.Meta = &mcp.Meta{ProgressToken: c.token, AdditionalFields: c.meta}
	}
	return r
}

// A raw client writes and reads lines of JSON.
type raw struct {
	t     *testing.T
	out   io.Writer
	lines chan []byte
}

func newRaw(t *testing.T, s *server.MCPServer, opts ...server.StdioOption) *raw {
	in, out := servePipes(t, s, opts...)
	r := &raw{t, out, make(chan []byte, 1000)}
	go func() {
		defer close(r.lines)
		for sc := bufio.NewScanner(in); sc.Scan(); {
			r.lines <- append([]byte(nil), sc.Bytes()...)
		}
	}()
	r.write(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"raw","version":"1"},"capabilities":{}}}`)
	r.answer("init")
	return r
}

func (r *raw) write(line string) {
	r.t.Helper()
	if _, err := io.WriteString(r.out, line+"\n"); err != nil {
		r.t.Fatal(err)
	}
}

type message struct {
	ID     any             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (r *raw) read() message {
	r.t.Helper()
	var m message
	select {
	case line := <-r.lines:
		if err := json.Unmarshal(line, &m); err != nil {
			r.t.Fatalf("%q: %v", line, err)
		}
	case <-time.After(slack):
		r.t.Fatal("no message")
	}
	return m
}

// answer returns the params of the notifications before the answer with the id, and the answer.
func (r *raw) answer(id any) (notes []string, answer message) {
	r.t.Helper()
	for {
		m := r.read()
		if m.ID == id && m.Method == "" {
			return notes, m
		}
		if m.Method == "notifications/progress" {
			notes = append(notes, string(m.Params))
		}
	}
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

func stopped(kind, limits, text string, more ...string) result {
	return result{Texts: append([]string{text}, more...), IsError: true, Outcome: kind + " 124 " + limits}
}

const (
	msgTotal = "Tool exceeded wall-clock limit of 0.06s."
	msgIdle  = "No progress for 0.06s (idle timeout). Tool should call heartbeat() during long work."
)
