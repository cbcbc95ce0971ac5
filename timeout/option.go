package timeout

import (
	"log/slog"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// An Option changes how [Run] and [Do] supervise. A [Config] is one: it sets the
// limits. Where an option is given twice, the last one counts, but for [WithHooks].
type Option interface{ apply(*settings) }

type settings struct {
	limits   Config
	tool     string
	clock    pulse.Clock
	log      *slog.Logger
	hooks    []Hooks
	limited  bool // limits were given; otherwise the process default applies
	recovers bool
	observe  bool // and do not enforce

	operation Operation   // beside the others of a byte: an execution has no room to spare in its size class
	command   *commandRun // nil where it runs a function
}

type optionFunc func(*settings)

func (f optionFunc) apply(s *settings) { f(s) }

func (c Config) apply(s *settings) { s.limits, s.limited = c, true }

// WithName names the tool in errors, logs and hooks, and labels the goroutine of the
// function, and those that it starts, with "tool" for profiles and goroutine dumps.
// An empty name is none.
func WithName(tool string) Option { return optionFunc(func(s *settings) { s.tool = tool }) }

// WithClock runs the execution on c: its limits, its grace, and what happens in
// package heartbeat under it. Executions within it inherit c. Without this option,
// or with nil, the clock is that of the execution around, or else the standard
// library's, which testing/synctest can fake.
//
// It is for tests that already have a mock clock. Time on c is taken to be exact, so no
// stall of the process is looked for. The Deadline of the function's context is the system's
// time plus what is left on c at that moment: what compares a deadline with the system's time,
// as net.Dialer does, works under a mock clock that stands at 1970. A context.WithTimeout in the
// function runs on the system's time.
func WithClock(c Clock) Option {
	return optionFunc(func(s *settings) {
		s.clock = nil
		if c != nil {
			s.clock = c
		}
	})
}

// WithLogger logs to l: what had to be corrected in the Config, a heartbeat that is
// close to the idle limit, the start of its closing (see [Closing]), a timeout, an abort, an abandoned function and what became
// of it. Without this option, or with nil, nothing is logged. A function that returns
// in time is not worth a line.
//
// Records are written synchronously; a handler that blocks delays the result.
func WithLogger(l *slog.Logger) Option { return optionFunc(func(s *settings) { s.log = l }) }

// WithRecover turns a panic of the function into a [*PanicError] that [Run] returns,
// as a server wants it. Without this option it reaches Run's caller as a panic.
func WithRecover() Option { return optionFunc(func(s *settings) { s.recovers = true }) }

// Refuse has [Run] and [Do] return err without calling the function. It is for packages that make
// options from settings, as package policy does: a setting that cannot be read becomes the outcome of
// the call that it is for. Refuse(nil) does nothing.
func Refuse(err error) Option { return refusal{err} }

// A refusal is looked for by run: in the settings it would take the execution out of its size class.
type refusal struct{ err error }

func (refusal) apply(*settings) {}
