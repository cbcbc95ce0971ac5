package mcpgo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/timeout"
)

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

// Without Install, a token that mcp-go has not kept is not replaced by another's.
func TestInexactToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server.NewMCPServer("test", "1")
		s.Use(mcpgo.Middleware(toolPolicy))
		s.AddTool(mcp.NewTool("report"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			progress.Report(ctx, progress.Update{Progress: 1})
			time.Sleep(time.Second)
			return mcp.NewToolResultText("done"), nil
		})
		write, read := aLine(t, s)
		for i, token := range []string{`9007199254740991`, `9007199254740993`, `-9007199254740991`, `-9007199254740993`, `true`, `null`} {
			write(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"report","_meta":{"progressToken":%s}}}`, i, token)
		}
		time.Sleep(time.Minute)
		var notes []string
		for _, m := range read() {
			if m.Method == "notifications/progress" {
				notes = append(notes, string(m.Params))
			}
		}
		slices.Sort(notes)
		want := []string{`{"progress":1,"progressToken":-9007199254740991}`, `{"progress":1,"progressToken":9007199254740991}`}
		if diff := cmp.Diff(want, notes); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// SPEC 7.5: a client that does not read delays neither the tools nor their limits. In real time, because those who wait
// for a lock stop the time of a bubble.
func TestClientThatDoesNotRead(t *testing.T) {
	ended := make(chan timeout.Snapshot, 10)
	s := newServer(mcpgo.WithOptions(timeout.WithHooks(timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) { ended <- s }})))
	ownQueue(s)
	std := server.NewStdioServer(s)
	std.SetErrorLogger(log.New(io.Discard, "", 0))
	stdio.Lock()
	defer stdio.Unlock()
	in, out := sdktest.NewPipe(), sdktest.NewPipe()
	served := make(chan error, 1)
	go func() { served <- mcpgo.Serve(t.Context(), std, in, out, 0) }()
	_, _ = fmt.Fprintln(in, initialize)
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	out.Stall()
	for id := range 3 {
		_, _ = fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"report","arguments":{"n":40,"everyMs":1},"_meta":{"progressToken":%[1]d}}}`+"\n", id)
	}
	_, _ = fmt.Fprintln(in, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"total","_meta":{"progressToken":5}}}`)
	for range 4 {
		if s := within(t, ended, "the end of a tool"); (s.Err != nil) != (s.Tool == "total") {
			t.Errorf("%s: %v", s.Tool, s.Err)
		}
	}
	_, _ = out.Close(), in.Close()
	within(t, served, "the end")
}
