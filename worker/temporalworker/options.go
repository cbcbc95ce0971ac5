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
// each activity. If WithOptions is given more than once, all of the options apply. A
// [timeout.Config] among them is the default of the policy (see [WithPolicy]) where the policy has
// none.
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

// WithPolicy takes limits from p, by the name of the activity's type. A total and a ceiling (MaxTotal)
// can only shorten the total of the activity's options. The idle limit may be longer than the
// HeartbeatTimeout: minutes, say, instead of seconds. If a limit is 0 or not set in p, the limit of
// the activity's options applies. Since [policy.Parse] fills in missing limits from the process
// default, a file should be unmarshalled into a Policy whose Default is an empty Config.
//
// The variables MCP_TIMEOUT and MCP_IDLE_TIMEOUT, which are for MCP servers, are not read, but
// variables that p names are. If the value of a variable is invalid, the activity fails with a
// *timeout.ConfigError.
//
// With ObserveOnly, a heartbeat is sent only if the activity has beaten since the last one, so that
// the service detects a stuck activity as it does without the interceptor. A nil p has no effect.
func WithPolicy(p *policy.Policy) Option {
	return optionFunc(func(s *settings) { s.policy = p })
}

// WithNonRetryable makes activities that were stopped for one of these reasons fail with a non-retryable
// error, whatever their RetryPolicy. A workflow can do the same for the activities that it starts, with
// [TypeIdle], [TypeTotal] or [TypeAborted] in the RetryPolicy's NonRetryableErrorTypes.
func WithNonRetryable(kinds ...timeout.Kind) Option {
	return optionFunc(func(s *settings) { s.nonRetryable = kinds })
}

// WithDataConverter sets the DataConverter of the client, without its codecs: the parent of
// converter.NewCodecDataConverter. This converter encodes the details of heartbeats that are sent
// again, and those of package heartbeat; the client's own converter encodes details when an activity
// records them. Both must support converter.RawValue, as those of the SDK do. Defaults to the SDK's
// default DataConverter; nil means the default.
func WithDataConverter(c converter.DataConverter) Option {
	if c == nil {
		c = converter.GetDefaultDataConverter()
	}
	return optionFunc(func(s *settings) { s.converter = c })
}

// WithLogger logs to l what [timeout.WithLogger] logs, and details that could not be kept or sent. The
// log has the whole stack of a stuck activity; the service gets only the beginning. An activity waits for l for
// at most 1 s a record, and while 16 records are stuck, further ones are dropped. Without this option, or with
// nil, nothing is logged.
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
	guarded      *logger // log, as far as it is waited for
	run          []timeout.Option
}

func newSettings(opts []Option) settings {
	s := settings{converter: converter.GetDefaultDataConverter(), log: slog.New(slog.DiscardHandler)}
	for _, o := range opts {
		if o != nil {
			o.apply(&s)
		}
	}
	s.guarded = &logger{to: s.log}
	return s
}
