package mcpsdk_test

import (
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
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
		"WithOptions":         {mcpsdk.WithOptions(), install | middleware | handler},
		"WithInterval":        {mcpsdk.WithInterval(time.Second), install | middleware | handler},
		"WithMetaTimeout":     {mcpsdk.WithMetaTimeout(), install | middleware | handler},
		"WithArgumentTimeout": {mcpsdk.WithArgumentTimeout(), install | middleware | handler},
		"WithAwait":           {mcpsdk.WithAwait(progress.Wait{}), install | middleware},
		"WithDeclaredLimits":  {mcpsdk.WithDeclaredLimits(), install | middleware},
		"WithTasks":           {mcpsdk.WithTasks(new(task.Tasks)), install},
		"WithContinuation":    {mcpsdk.WithContinuation(time.Second), install},
		"WithWaitTool":        {mcpsdk.WithWaitTool("wait"), install},
		"WithPolicy":          {mcpsdk.WithPolicy(new(policy.Policy)), handler},
		"UseDeclared":         {mcpsdk.UseDeclared(mcpsdk.ClientLimits{}), 0},
	} {
		of := 0
		if _, ok := tt.option.(mcpsdk.InstallOption); ok {
			of |= install
		}
		if _, ok := tt.option.(mcpsdk.MiddlewareOption); ok {
			of |= middleware
		}
		if _, ok := tt.option.(mcpsdk.HandlerOption); ok {
			of |= handler
		}
		if _, ok := tt.option.(mcpsdk.LimitOption); ok != (tt.of == 0) || of != tt.of {
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

// An option that is refused is refused when the server is set up.
func TestRefusedOptions(t *testing.T) {
	observe := mcpsdk.WithOptions(timeout.WithObserveOnly())
	refused(t, "Settings.Options", func() { mcpsdk.Install(newServer(), nil, observe) })
	refused(t, "Settings.Options", func() { mcpsdk.Middleware(nil, observe) })
	refused(t, "Settings.Options", func() { mcpsdk.Handler[any, any](nil, observe) })
}
