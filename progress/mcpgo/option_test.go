package mcpgo_test

import (
	"context"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// An option that would do nothing does not compile: each is of the constructors that it is for.
func TestOptionsAreOfTheirConstructors(t *testing.T) {
	const install, middleware, handler = 1, 2, 4
	for name, tt := range map[string]struct {
		option any
		of     int
	}{
		"WithOptions":         {mcpgo.WithOptions(), install | middleware | handler},
		"WithInterval":        {mcpgo.WithInterval(time.Second), install | middleware | handler},
		"WithMetaTimeout":     {mcpgo.WithMetaTimeout(), install | middleware | handler},
		"WithArgumentTimeout": {mcpgo.WithArgumentTimeout(), install | middleware | handler},
		"WithAwait":           {mcpgo.WithAwait(progress.Wait{}), install | middleware | handler},
		"WithDeclaredLimits":  {mcpgo.WithDeclaredLimits(), install},
		"WithTasks":           {mcpgo.WithTasks(new(task.Tasks)), install},
		"WithContinuation":    {mcpgo.WithContinuation(time.Second), install},
		"WithWaitTool":        {mcpgo.WithWaitTool("wait"), install},
		"WithPrincipal":       {mcpgo.WithPrincipal(func(context.Context) string { return "" }), install},
		"WithPolicy":          {mcpgo.WithPolicy(new(policy.Policy)), handler},
		"UseDeclared":         {mcpgo.UseDeclared(mcpgo.ClientLimits{}), 0},
	} {
		of := 0
		if _, ok := tt.option.(mcpgo.InstallOption); ok {
			of |= install
		}
		if _, ok := tt.option.(mcpgo.MiddlewareOption); ok {
			of |= middleware
		}
		if _, ok := tt.option.(mcpgo.HandlerOption); ok {
			of |= handler
		}
		if _, ok := tt.option.(mcpgo.LimitOption); ok != (tt.of == 0) || of != tt.of {
			t.Errorf("%s is taken by %03b (handler, middleware, install), and by Limit: %v; want %03b", name, of, ok, tt.of)
		}
	}
}

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

// An option that is refused, or that needs another one, is refused when the server is set up.
func TestRefusedOptions(t *testing.T) {
	observe := mcpgo.WithOptions(timeout.WithObserveOnly())
	refused(t, "Settings.Options", func() { mcpgo.Install(server.NewMCPServer("s", "1"), nil, observe) })
	refused(t, "Settings.Options", func() { mcpgo.Middleware(nil, observe) })
	refused(t, "Settings.Options", func() { mcpgo.Handler(nil, observe) })

	principal := mcpgo.WithPrincipal(func(context.Context) string { return "" })
	refused(t, "WithPrincipal", func() { mcpgo.Install(server.NewMCPServer("s", "1"), nil, principal) })
	tasks := new(task.Tasks)
	defer tasks.Close()
	for _, with := range []mcpgo.InstallOption{mcpgo.WithTasks(tasks), mcpgo.WithContinuation(time.Second), mcpgo.WithIdempotency()} {
		mcpgo.Install(server.NewMCPServer("s", "1"), nil, principal, with)
	}
}
