package mcpsdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A rawServer is a server that is written by hand, so that it can do what an SDK does not.
type rawServer struct {
	t    *testing.T
	conn mcp.Connection

	mu   sync.Mutex
	seen []string // method and id, and of a cancellation the id that it names
}

// serveRaw answers the handshake of the older protocol, and leaves the rest to handle.
func serveRaw(t *testing.T, handle func(w *rawServer, req *jsonrpc.Request)) (*rawServer, mcp.Transport) {
	clientSide, serverSide := mcp.NewInMemoryTransports()
	conn, err := serverSide.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := &rawServer{t: t, conn: conn}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		for {
			msg, err := conn.Read(context.Background())
			if err != nil {
				return
			}
			req, ok := msg.(*jsonrpc.Request)
			if !ok {
				continue
			}
			w.note(req)
			go handle(w, req)
		}
	}()
	return w, clientSide
}

func (w *rawServer) note(req *jsonrpc.Request) {
	line := req.Method
	if req.Method == "notifications/cancelled" {
		var p struct{ RequestID int }
		_ = json.Unmarshal(req.Params, &p)
		line += fmt.Sprintf(" of %d", p.RequestID)
	} else if req.IsCall() {
		line += fmt.Sprintf(" #%v", req.ID.Raw())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, line)
}

func (w *rawServer) lines() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.seen...)
}

func (w *rawServer) send(text string, args ...any) {
	msg, err := jsonrpc.DecodeMessage(fmt.Appendf(nil, text, args...))
	if err != nil {
		w.t.Errorf("%s: %v", fmt.Sprintf(text, args...), err)
		return
	}
	_ = w.conn.Write(context.Background(), msg)
}

func (w *rawServer) answer(id jsonrpc.ID, result string) {
	w.send(`{"jsonrpc":"2.0","id":%v,"result":%s}`, id.Raw(), result)
}

func (w *rawServer) initialize(req *jsonrpc.Request) {
	w.answer(req.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"wire","version":"v1"}}`)
}

// SPEC 8.2, 8.4: the handshake's requests have limits; initialize is not cancelled.
func TestClientInitializeIsNotCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestClient(nil)
		mcpsdk.Limit(c, mcpsdk.ClientLimits{}, request.DefaultLimits())
		w, transport := serveRaw(t, func(*rawServer, *jsonrpc.Request) {})
		start := time.Now()
		_, err := c.Connect(t.Context(), transport, nil)
		e := timedOut(t, err, "initialize")
		if e.Elapsed != 5*time.Second || time.Since(start) > 11*time.Second {
			t.Errorf("%v after %v: %+v", err, time.Since(start), e)
		}
		synctest.Wait()
		got := w.lines()
		slices.Sort(got) // the SDK cancels on another goroutine
		if d := cmp.Diff([]string{"initialize #2", "notifications/cancelled of 1", "server/discover #1"}, got); d != "" {
			t.Error(d)
		}
	})
}

// A server that does not read: the SDK is stuck in writing, and the caller is not. In
// real time, because those who wait for a lock stop the time of a bubble.
func TestClientStuckInWriting(t *testing.T) {
	c := newTestClient(nil)
	mcpsdk.Limit(c, mcpsdk.ClientLimits{Timeout: 20 * ms}, map[string]mcpsdk.ClientLimits{"initialize": {}})
	clientSide, serverSide := mcp.NewInMemoryTransports()
	conn, err := serverSide.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go func() { // the handshake is all that is read
		w := &rawServer{t: t, conn: conn}
		msg, _ := conn.Read(t.Context())
		w.initialize(msg.(*jsonrpc.Request))
		_, _ = conn.Read(t.Context())
	}()
	cs, err := c.Connect(t.Context(), clientSide, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	before := timeout.AbandonedCount()
	abandoned := 0
	for range 4 {
		_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "work"})
		if timedOut(t, err, "tools/call").Abandoned {
			abandoned++
		}
	}
	if abandoned == 0 {
		t.Error("the SDK was never stuck: this tests nothing")
	}
	_ = conn.Close()
	_ = cs.Close()
	for deadline := time.Now().Add(20 * time.Second); timeout.AbandonedCount() > before; time.Sleep(ms) {
		if time.Now().After(deadline) {
			t.Fatalf("%d calls are still stuck", timeout.AbandonedCount()-before)
		}
	}
}
