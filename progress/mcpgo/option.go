package mcpgo

import (
	"context"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// Options are of the constructors for which they mean something: another one does not take them.
type (
	// An InstallOption configures [Install].
	InstallOption interface{ forInstall(*settings) }
	// A MiddlewareOption configures [Middleware] or [Install].
	MiddlewareOption interface {
		InstallOption
		forMiddleware(*settings)
	}
	// A HandlerOption configures [Handler].
	HandlerOption interface{ forHandler(*settings) }
	// An Option configures [Install], [Middleware] or [Handler].
	Option interface {
		MiddlewareOption
		HandlerOption
	}
)

type option func(*settings)

func (f option) forInstall(s *settings)    { f(s) }
func (f option) forMiddleware(s *settings) { f(s) }
func (f option) forHandler(s *settings)    { f(s) }

type installOption func(*settings)

func (f installOption) forInstall(s *settings) { f(s) }

type handlerOption func(*settings)

func (f handlerOption) forHandler(s *settings) { f(s) }

type settings struct {
	calls toolcall.Settings
	await progress.Wait
	watch *watch // nil without Install

	declare bool                                  // what the limits are
	methods map[string]policy.Declaration         // that are declared, too
	repeats *adapter.Answers[*mcp.CallToolResult] // nil without WithIdempotency

	tasks        *task.Tasks           // nil without WithTasks and WithContinuation
	offered      bool                  // tasks are, and not only continuations
	continuation *adapter.Continuation // nil without WithContinuation
	principal    func(context.Context) string
}

// newSettings applies the options, each as apply says. It panics where they contradict one another: the
// constructors have no error to return, and a server that starts all the same would refuse its calls.
func newSettings[O comparable](opts []O, apply func(O, *settings)) *settings {
	s := new(settings)
	var none O
	for _, o := range opts {
		if o != none {
			apply(o, s)
		}
	}
	if err := s.calls.Check(); err != nil {
		panic(err)
	}
	return s
}

// WithPolicy sets the policy that has the limits of a [Handler], by tool name. [Middleware] and
// [Install] take the policy as an argument.
func WithPolicy(p *policy.Policy) HandlerOption {
	return handlerOption(func(s *settings) { s.calls.Policy = p })
}

// WithOptions passes options on to the execution of each call: [timeout.WithLogger],
// [timeout.WithHooks], [timeout.WithClock]. A [timeout.Config] among them replaces what the policy
// says. If [timeout.WithObserveOnly] is among them, the constructor panics with a
// [*timeout.ConfigError]: use ObserveOnly of the policy. If WithOptions is given more than once, all
// options are passed on.
func WithOptions(opts ...timeout.Option) Option {
	return option(func(s *settings) { s.calls.Options = append(s.calls.Options, opts...) })
}

// WithInterval sets the shortest time between two progress notifications of a call. 0 means 10 s; a
// negative interval means no pause between them.
func WithInterval(d time.Duration) Option {
	return option(func(s *settings) { s.calls.Interval = d })
}

// WithAwait says how the questions that tools return wait under [progress.Await]. For example,
// progress.Wait{Limit: 45 * time.Second, ProgressLimit: 10 * time.Minute} gives people more time than the
// default of 30 s, or 120 s if the call has a progress token. [Elicit] and [Sample] take a Wait as an argument.
func WithAwait(wait progress.Wait) Option {
	return option(func(s *settings) { s.await = wait })
}

// WithMetaTimeout lets a request set its total with timeoutMs in its _meta: a positive whole number
// of milliseconds, which is cut to the tool's [policy.Tool.MaxTotal]. If the value is anything else,
// the tool is not called, and the result says so. If both this option and [WithArgumentTimeout] are
// given, _meta takes precedence. Both are off by default, because without a MaxTotal a request could
// lift every limit.
func WithMetaTimeout() Option { return option(func(s *settings) { s.calls.MetaTimeout = true }) }

// WithArgumentTimeout is [WithMetaTimeout] for a timeoutMs among the tool's arguments, which the tool
// also gets. Declare the argument in the tool's input schema, as an integer that is not required:
// models learn of it there, and a server with server.WithInputSchemaValidation may otherwise refuse
// it.
func WithArgumentTimeout() Option {
	return option(func(s *settings) { s.calls.ArgumentTimeout = true })
}
