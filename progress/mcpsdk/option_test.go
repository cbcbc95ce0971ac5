package mcpsdk_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// refused checks that a constructor panics with a *timeout.ConfigError, and for which key.
func refused(t *testing.T, key string, construct func()) {
	t.Helper()
	defer func() {
		if bad, ok := recover().(*timeout.ConfigError); !ok || bad.Key != key || bad.Accepted == "" {
			t.Errorf("%#v, want a ConfigError for %s", bad, key)
		}
	}()
	construct()
}

// An option that is refused is refused when the server is set up.
func TestRefusedOptions(t *testing.T) {
	observe := mcpsdk.WithOptions(timeout.WithObserveOnly())
	refused(t, "Settings.Options", func() { mcpsdk.Install(newTestServer(), nil, observe) })
	refused(t, "Settings.Options", func() { mcpsdk.Middleware(nil, observe) })
	refused(t, "Settings.Options", func() { mcpsdk.Handler[any, any](nil, observe) })
}

// An argument that the schema declares is not taken away.
func TestDeclaredTimeoutArgument(t *testing.T) {
	type input struct {
		Path      string `json:"path"`
		TimeoutMs int    `json:"timeoutMs,omitempty"`
	}
	s := newTestServer()
	mcp.AddTool(s, &mcp.Tool{Name: "typed"}, func(ctx context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		deadline, ok := ctx.Deadline()
		left := time.Until(deadline)
		return textResult(fmt.Sprint(in.TimeoutMs, ok && left <= time.Minute && left > time.Minute-time.Second)), nil, nil
	})
	mcpsdk.Install(s, nil, mcpsdk.WithArgumentTimeout())
	cs := connectClient(t, newTestClient(nil), s, protocol2025)
	res, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "typed", Arguments: input{"x", 60000}})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"60000 true"}, texts(res)); d != "" {
		t.Error(d)
	}
}
