package mcpsdk_test

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
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

// What contradicts itself, or does nothing, is refused when the server is set up.
func TestRefusedOptions(t *testing.T) {
	limits := new(timeout.Config)
	h := func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
		return nil, nil, nil
	}
	refused(t, "server", func() { mcpsdk.Install(nil, nil) })
	refused(t, "handler", func() { mcpsdk.Handler[any, any](nil, nil) })
	refused(t, "client", func() { mcpsdk.Limit(nil, nil) })
	refused(t, "Options.Limits", func() { mcpsdk.Install(newTestServer(), &mcpsdk.Options{Limits: limits, Policy: new(policy.Policy)}) })
	refused(t, "Options.Methods", func() { mcpsdk.Install(newTestServer(), &mcpsdk.Options{Methods: map[string]policy.Declaration{}}) })
	nobody := func(context.Context) string { return "" }
	refused(t, "Options.Principal", func() { mcpsdk.Install(newTestServer(), &mcpsdk.Options{Principal: nobody}) })
	for field, o := range map[string]*mcpsdk.Options{
		"Await": {Await: progress.Wait{Limit: 1}}, "Requests": {Requests: new(progress.Wait)}, "Declare": {Declare: true}, "Methods": {Methods: map[string]policy.Declaration{}},
		"Tasks": {Tasks: new(task.Tasks)}, "Continuation": {Continuation: new(mcpsdk.Continuation)}, "Idempotency": {Idempotency: true}, "Principal": {Principal: nobody},
	} {
		refused(t, "Options."+field, func() { mcpsdk.Handler(h, o) })
	}
}
