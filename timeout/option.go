package timeout

import (
	"log/slog"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// An Option changes how [Run] and [Do] supervise a function. A [Config] is an Option that sets the
// limits. If an option is given twice, the last one counts, except for [WithHooks].
type Option interface{ apply(*settings) }

// A Setting is an Option that sets no limits: any but a [Config]. Packages that take the limits in another
// place accept Settings to pass on, and so cannot be given limits twice.
type Setting interface {
	Option
	setting()
}

type settings struct {
	limits   Config
	tool     string
	clock    pulse.Clock
	log      *slog.Logger
	hooks    []Hooks
	limited  bool // limits were given; otherwise the process default applies
	recovers bool
	observe  bool // the limits are observed and not enforced

	uninherited bool // the deadline of the environment is left out
	inherits    bool // it is the total that is enforced, or has passed

	operation Operation   // beside the others of a byte: an execution has no room to spare in its size class
	command   *commandRun // nil where it runs a function
}

type optionFunc func(*settings)

func (f optionFunc) apply(s *settings) { f(s) }
func (optionFunc) setting()            {}

func (c Config) apply(s *settings) { s.limits, s.limited = c, true }

// WithName names the tool in errors, logs and hooks. It also labels the function's goroutine, and
// those that it starts, with "tool" for profiles and goroutine dumps. An empty name is no name.
func WithName(tool string) Setting { return optionFunc(func(s *settings) { s.tool = tool }) }

// WithLogger logs to l: corrections of the Config, silence close to the idle limit, a timeout, an abort, and an
// abandoned function and its later return. A function that returns in time is not logged. Without this option, or
// if l is nil, nothing is logged.
//
// Records are written as hooks are called: a handler that blocks delays no stop, and Run's return for no longer
// than a grace; see [Hooks].
func WithLogger(l *slog.Logger) Setting { return optionFunc(func(s *settings) { s.log = l }) }

// WithRecover makes [Run] return a panic of the function as a [*PanicError], which suits a server.
// Without this option the panic reaches Run's caller.
func WithRecover() Setting { return optionFunc(func(s *settings) { s.recovers = true }) }

// Refuse makes [Run] and [Do] return err without calling the function. It is for packages that make
// options from settings, such as package policy: the error of a setting that cannot be read becomes
// the outcome of the call. Refuse(nil) does nothing.
func Refuse(err error) Setting { return refusal{err} }

// A refusal is looked for by run: in the settings it would take the execution out of its size class.
type refusal struct{ err error }

func (refusal) apply(*settings) {}
func (refusal) setting()        {}
