package mcpsdk_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
)

// followingLegacy connects a client that follows tasks in protocol 2025-11-25.
func followingLegacy(t testing.TB, transport mcp.Transport, opts *mcp.ClientOptions, prepare ...func(*mcp.Client)) *mcp.ClientSession {
	t.Helper()
	c := newTestClient(opts)
	for _, f := range prepare {
		f(c)
	}
	mcpsdk.FollowTasks(c)
	cs, err := c.Connect(context.Background(), mcpsdk.WrapClientTransport(transport), &mcp.ClientSessionOptions{ProtocolVersion: protocol2025})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	if got := cs.InitializeResult().ProtocolVersion; got != protocol2025 {
		t.Fatal(got)
	}
	return cs
}

// SPEC 11.2: the form of the documentation, with no options, end to end: the call is a task, which outlives the limit of
// a request, and its connection.
func TestFollowTasksAsDocumented(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTaskServer(t)
		hc := overNet(t, shared(t, s, mcp.StreamableHTTPOptions{}))
		client := newTestClient(nil)
		mcpsdk.Limit(client, mcpsdk.ClientLimits{Timeout: 8 * time.Second}, nil)
		mcpsdk.FollowTasks(client)
		cs, err := client.Connect(t.Context(), mcpsdk.WrapClientTransport(&mcp.StreamableClientTransport{Endpoint: "http://localhost/", HTTPClient: hc}), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := cs.InitializeResult().ProtocolVersion; got != protocol2025 {
			t.Errorf("speaks %s: the documentation says otherwise", got)
		}
		time.AfterFunc(10*time.Second, func() { s.gate <- struct{}{} })
		if got := texts(call(t, cs, "gated", nil)); got[0] != "through" {
			t.Error(got)
		}
		_ = cs.Close()
	})
}
