package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A webServer is a server of the SDK over HTTP.
type webServer struct {
	http.Handler
	mcp     *mcp.Server
	refuse  atomic.Bool // everything, as a server that is going down
	headers atomic.Pointer[http.Header]
	running atomic.Int64
}

// there is the URL of the server of a machine.
const there = "http://server.test/mcp"

type toolInput struct {
	Ms int `json:"ms,omitempty"`
}

func newWebServer(options *mcp.StreamableHTTPOptions) *webServer {
	w := &webServer{mcp: mcp.NewServer(&mcp.Implementation{Name: "web", Version: "1"}, nil)}
	tool := func(name string, fn func(context.Context, *mcp.CallToolRequest, toolInput) string) {
		mcp.AddTool(w.mcp, &mcp.Tool{Name: name}, func(ctx context.Context, req *mcp.CallToolRequest, in toolInput) (*mcp.CallToolResult, any, error) {
			w.running.Add(1)
			defer w.running.Add(-1)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fn(ctx, req, in)}}}, nil, nil
		})
	}
	tool("echo", func(context.Context, *mcp.CallToolRequest, toolInput) string { return "done" })
	tool("hang", func(ctx context.Context, _ *mcp.CallToolRequest, _ toolInput) string {
		<-ctx.Done()
		return "half of it"
	})
	tool("progress", func(ctx context.Context, req *mcp.CallToolRequest, in toolInput) string {
		for i, end := 1, time.Now().Add(time.Duration(in.Ms)*time.Millisecond); time.Now().Before(end); i++ {
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: float64(i), Message: fmt.Sprint("step ", i)})
			time.Sleep(50 * time.Millisecond)
		}
		return "done"
	})
	tool("ask", func(ctx context.Context, req *mcp.CallToolRequest, _ toolInput) string {
		res, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "really?", RequestedSchema: map[string]any{"type": "object"}})
		if err != nil {
			return err.Error()
		}
		return res.Action
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return w.mcp }, options)
	w.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.refuse.Load() {
			http.Error(rw, "going down", http.StatusServiceUnavailable)
			return
		}
		h := r.Header.Clone()
		w.headers.Store(&h)
		handler.ServeHTTP(rw, r)
	})
	return w
}

func TestURL(t *testing.T) {
	t.Setenv("TOKEN", "secret")
	synctest.Test(t, func(t *testing.T) {
		w := newWebServer(nil)
		h := (&virtualMachine{server: w}).host(t, "-url", there, "-idle", "8s", "-header", "Authorization: Bearer $TOKEN", "-keep-alive", "400ms")
		h.await(h.ask("0", "initialize", strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1)), "initialize")
		h.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		if got := h.call("1", "echo", `{}`); got.raw != `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}]}}` {
			t.Error(got.raw)
		}
		headers := *w.headers.Load()
		if headers.Get("Authorization") != "Bearer secret" || headers.Get("Mcp-Protocol-Version") != "2025-11-25" || headers.Get("Mcp-Session-Id") == "" {
			t.Errorf("%v", headers)
		}
		if got := h.await(h.start("2", "hang", `{}`, `"t"`), "hang"); got.outcome() != "idle 124" || !got.Result.IsError {
			t.Error(got.raw)
		}
		eventually(t, "the tool's end", func() bool { return w.running.Load() == 0 })
		if len(h.got("waiting for the server")) == 0 {
			t.Error("no keep-alive")
		}
		if got := h.await(h.start("3", "progress", `{"ms":10000}`, `"p"`), "progress"); got.text() != "done" || len(h.got(`"message":"step `)) < 5 {
			t.Error(got.raw)
		}
		answer := h.start("4", "ask", `{}`, "")
		eventually(t, "the question", func() bool { return len(h.got("elicitation/create")) > 0 })
		time.Sleep(10 * time.Second) // a person takes longer than the idle limit
		id, _, _ := strings.Cut(strings.SplitN(h.got("elicitation/create")[0], `"id":`, 2)[1], `,`)
		h.send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"decline"}}`)
		if got := h.await(answer, "ask"); got.text() != "decline" {
			t.Error(got.raw)
		}
		mcp.AddTool(w.mcp, &mcp.Tool{Name: "another"}, func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
			return nil, nil, nil
		})
		eventually(t, "a message of the server's own", func() bool { return len(h.got("tools/list_changed")) > 0 })
	})
}

// Requests of 2026-07-28 stand alone: there is no session, and closing the stream cancels the call.
func TestURLWithoutSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWebServer(&mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
		h := (&virtualMachine{server: w}).host(t, "-url", there, "-tool", "hang:idle=2s")
		const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
		if got := h.await(h.ask("1", "tools/call", `{"name":"echo","arguments":{},`+meta+`}`), "echo"); got.text() != "done" || got.Result.ResultType != "complete" {
			t.Error(got.raw)
		}
		headers := *w.headers.Load()
		if d := cmp.Diff([]string{"2026-07-28", "tools/call", "echo", ""}, []string{
			headers.Get("Mcp-Protocol-Version"), headers.Get("Mcp-Method"), headers.Get("Mcp-Name"), headers.Get("Mcp-Session-Id"),
		}); d != "" {
			t.Error(d)
		}
		if got := h.await(h.ask("2", "tools/call", `{"name":"hang","arguments":{},`+meta+`}`), "hang"); got.outcome() != "idle 124" || got.Result.ResultType != "complete" {
			t.Error(got.raw)
		}
		eventually(t, "the tool's end", func() bool { return w.running.Load() == 0 })
		h.ask("3", "tools/call", `{"name":"hang","arguments":{},`+meta+`}`)
		eventually(t, "the tool", func() bool { return w.running.Load() == 1 })
		h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
		eventually(t, "its end", func() bool { return w.running.Load() == 0 })
	})
}
