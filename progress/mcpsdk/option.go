package mcpsdk

import (
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// Options are of the constructors for which they mean something: another one does not take them.
type (
	// An InstallOption changes what [Install] does.
	InstallOption interface{ forInstall(*settings) }
	// A MiddlewareOption changes what [Middleware] or [Install] does.
	MiddlewareOption interface {
		InstallOption
		forMiddleware(*settings)
	}
	// A HandlerOption changes what [Handler] does.
	HandlerOption interface{ forHandler(*settings) }
	// An Option changes what any of the three does.
	Option interface {
		MiddlewareOption
		HandlerOption
	}
)

type option func(*settings)

func (f option) forInstall(s *settings)    { f(s) }
func (f option) forMiddleware(s *settings) { f(s) }
func (f option) forHandler(s *settings)    { f(s) }

type middlewareOption func(*settings)

func (f middlewareOption) forInstall(s *settings)    { f(s) }
func (f middlewareOption) forMiddleware(s *settings) { f(s) }

type installOption func(*settings)

func (f installOption) forInstall(s *settings) { f(s) }

type handlerOption func(*settings)

func (f handlerOption) forHandler(s *settings) { f(s) }

type settings struct {
	calls toolcall.Settings
	await []progress.AwaitOption

	holdRequests bool // those of WithRequests
	requests     []progress.AwaitOption

	declare bool                          // what the limits are
	methods map[string]policy.Declaration // that are declared, too
	repeats *adapter.Answers[mcp.Result]  // nil without WithIdempotency
	taskSettings
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

func (s *settings) ofServer(p *policy.Policy) *settings {
	if p != nil {
		s.calls.Policy = p
	}
	s.waiting = waitServer(s.calls)
	return s
}

// WithPolicy sets the limits of a [Handler], by tool name. [Middleware] and [Install] have the policy as
// an argument.
func WithPolicy(p *policy.Policy) HandlerOption {
	return handlerOption(func(s *settings) { s.calls.Policy = p })
}

// WithOptions passes options on to the execution of each call: [timeout.WithLogger],
// [timeout.WithHooks], [timeout.WithClock]. A [timeout.Config] among them takes the place
// of what the policy says. With [timeout.WithObserveOnly] among them, the constructor panics with a
// [*timeout.ConfigError]: use ObserveOnly of the policy. Given more than once, all are passed on.
func WithOptions(opts ...timeout.Option) Option {
	return option(func(s *settings) { s.calls.Options = append(s.calls.Options, opts...) })
}

// WithInterval is the shortest time between two progress notifications of a call. 0 means
// 10 s, and a negative value none.
func WithInterval(d time.Duration) Option {
	return option(func(s *settings) { s.calls.Interval = d })
}

// WithAwait passes options on to [progress.Await], under which elicitations wait:
// progress.WithLimits(45*time.Second, 10*time.Minute) leaves people more time than 30 s, and 120 s
// where the call has a progress token.
func WithAwait(opts ...progress.AwaitOption) MiddlewareOption {
	return middlewareOption(func(s *settings) { s.await = append(s.await, opts...) })
}

// WithRequests has every other request of a tool to the client, such as sampling/createMessage, hold
// the idle check too: it waits as under [progress.AwaitReply] with these options, whose limits are not
// those of [WithAwait]. Without it the idle limit of the tool finds a client that does not reply. A
// request that the tool makes under an execution of its own is left to the limits of that one.
func WithRequests(opts ...progress.AwaitOption) MiddlewareOption {
	return middlewareOption(func(s *settings) { s.holdRequests, s.requests = true, append(s.requests, opts...) })
}

// WithMetaTimeout lets a request ask for a total of its own with timeoutMs in its _meta:
// a whole number of milliseconds, at most the tool's [policy.Tool.MaxTotal]. Where it is
// anything else, the tool is not called and the result says so. Without this option and
// [WithArgumentTimeout] requests have no say, since with no MaxTotal they could lift every
// limit. Where both are given, _meta goes first.
func WithMetaTimeout() Option { return option(func(s *settings) { s.calls.MetaTimeout = true }) }

// WithArgumentTimeout is [WithMetaTimeout] for timeoutMs among the tool's arguments. It is
// left there, so declare it in the tool's input schema, as an integer that is not required:
// that is how a model learns of it, and the schema that the SDK derives from a struct
// allows no arguments but those of the struct.
func WithArgumentTimeout() Option {
	return option(func(s *settings) { s.calls.ArgumentTimeout = true })
}
