package temporalworker

import (
	"log/slog"

	"go.temporal.io/sdk/converter"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// An Option changes how an [Interceptor] runs activities. Where an option is given twice, the last
// one counts, unless its documentation says otherwise. A nil Option has no effect.
type Option interface{ apply(*settings) }

type optionFunc func(*settings)

func (f optionFunc) apply(s *settings) { f(s) }

// WithOptions gives options of package timeout, such as [timeout.WithHooks], to the execution of
// each activity. Given more than once, all of them apply. A [timeout.Config] among them is the
// default of the policy (see [WithPolicy]) where the policy has none.
//
// An execution is named after the type of the activity, unless [timeout.WithName] is given.
// [timeout.WithRecover] always applies.
func WithOptions(opts ...timeout.Option) Option {
	return optionFunc(func(s *settings) {
		for _, o := range opts {
			if c, ok := o.(timeout.Config); ok {
				s.limits = &c
			} else {
				s.run = append(s.run, o) // nil has no effect there
			}
		}
	})
}

// WithPolicy takes limits from p, by the name of the activity's type. A total, and a ceiling
// (MaxTotal), can only shorten that of the activity's options. An idle limit may be longer than
// the HeartbeatTimeout: the one may be minutes and the other seconds. A limit that is 0 in p, or
// not set, is that of the activity's options.
//
// The variables MCP_TIMEOUT and MCP_IDLE_TIMEOUT, which are for MCP servers, are not read. Those
// that p names are. An activity whose variable cannot be read fails with a *timeout.ConfigError.
//
// Under ObserveOnly heartbeats are sent only when the activity has beaten, so that the service
// finds out that it is stuck, as without the interceptor. A nil p is none.
func WithPolicy(p *policy.Policy) Option {
	return optionFunc(func(s *settings) { s.policy = p })
}

// WithNonRetryable has the service not retry activities that were stopped for one of these
// reasons, whatever the RetryPolicy. A workflow can say so itself, for its activities: with
// [TypeIdle], [TypeTotal] or [TypeAborted] among the RetryPolicy's NonRetryableErrorTypes.
func WithNonRetryable(kinds ...timeout.Kind) Option {
	return optionFunc(func(s *settings) { s.nonRetryable = kinds })
}

// WithDataConverter names the DataConverter of the client where that is not the SDK's default
// one, without its codecs: the parent of converter.NewCodecDataConverter. With it the details of
// heartbeats are encoded that are sent again, and those of package heartbeat. Those that an
// activity records are sent by the client's own the first time. Both must know
// converter.RawValue, as those of the SDK do. A nil c is the SDK's default one.
func WithDataConverter(c converter.DataConverter) Option {
	if c == nil {
		c = converter.GetDefaultDataConverter()
	}
	return optionFunc(func(s *settings) { s.converter = c })
}

// WithLogger logs to l what timeout.WithLogger logs, and details that could not be kept or sent.
// The whole stack of a stuck activity is there, of which the service gets the beginning. Without
// it, or with nil, nothing is logged.
func WithLogger(l *slog.Logger) Option {
	if l == nil {
		l = slog.New(slog.DiscardHandler)
	}
	return optionFunc(func(s *settings) { s.log, s.run = l, append(s.run, timeout.WithLogger(l)) })
}

type settings struct {
	policy       *policy.Policy
	limits       *timeout.Config // the policy's default where it has none
	nonRetryable []timeout.Kind
	converter    converter.DataConverter
	log          *slog.Logger
	run          []timeout.Option
}

func newSettings(opts []Option) settings {
	s := settings{converter: converter.GetDefaultDataConverter(), log: slog.New(slog.DiscardHandler)}
	for _, o := range opts {
		if o != nil {
			o.apply(&s)
		}
	}
	return s
}
