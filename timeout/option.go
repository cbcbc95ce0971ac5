package timeout

import (
	"log/slog"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/command"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// An Option changes how [Run] and [Do] supervise a function. A [Config] is an Option that sets the limits. A nil
// Option is ignored. If an option is given more than once, the last one counts, except that the hooks of each
// [WithHooks] are called, and that the first [Refuse] with an error counts.
type Option interface{ apply(*settings) }

// A Setting is an Option that sets no limits: any Option but a [Config]. Packages that take the limits elsewhere
// accept Settings to pass on, so that limits cannot be given twice.
type Setting interface {
	Option
	setting()
}

type settings struct {
	limits   Config
	tool     string
	clock    pulse.Clock
	log      *slog.Logger
	hooks    []*Hooks
	limited  bool // whether limits were given; otherwise the process default applies
	recovers bool
	observe  bool // whether the limits are observed and not enforced

	uninherited bool // whether the execution ignores TOOL_DEADLINE
	inherits    bool // whether TOOL_DEADLINE is the enforced total, or has passed

	operation Operation   // next to the other one-byte fields, so that an Execution stays in its size class
	command   *commandRun // nil if the execution runs a function
}

// A commandRun holds the fields that only the execution of a command needs.
type commandRun struct {
	*command.Command

	// Guarded by the cell's lock.
	concluded bool  // whether final and returned are set
	final     error // the outcome of the call
	returned  bool  // whether the command ended by itself, with final as its outcome
	reported  bool  // whether the call is about to return, after the wait for hooks and logger
}

type optionFunc func(*settings)

func (f optionFunc) apply(s *settings) { f(s) }

func (optionFunc) setting() {}

func (c Config) apply(s *settings) { s.limits, s.limited = c, true }

// WithName sets the name of the tool in errors, logs and hooks. The name is also the value of the pprof label "tool"
// of the function's goroutine, and of the goroutines that the function starts, for profiles and goroutine dumps. ""
// means no name and no label.
func WithName(tool string) Setting { return optionFunc(func(s *settings) { s.tool = tool }) }

// WithOperation sets the Operation that a [Snapshot] and an [Error] show. The default is OperationTool; a command
// always has OperationCommand. Nested executions do not inherit the Operation.
func WithOperation(o Operation) Setting {
	return optionFunc(func(s *settings) { s.operation = o })
}

// WithLogger logs to l, among others: corrections of the Config, silence close to the idle limit, a stall of the
// process, a timeout, an abort, and an abandoned function and its later return. A return in time is not logged.
// Without this option, or if l is nil, nothing is logged.
//
// Records are written as hooks are called: a handler that blocks delays no stop, and delays Run's return by no more
// than a grace; see [Hooks].
func WithLogger(l *slog.Logger) Setting { return optionFunc(func(s *settings) { s.log = l }) }

// WithHooks sets the hooks h. If the option is given more than once, all hooks are called, in the order given. The
// hooks of [Watch] are called before them for Context and Started, and after them for all other events.
func WithHooks(h Hooks) Setting {
	return optionFunc(func(s *settings) {
		if h.isAnySet() { // an execution without hooks needs no queue of reports
			s.hooks = append(s.hooks, &h)
		}
	})
}

// WithRecover makes [Run] return a panic of the function as a [*PanicError], which suits a server. After a stop, the
// *PanicError is the Err of the [*Error]. Without this option the panic reaches Run's caller.
func WithRecover() Setting { return optionFunc(func(s *settings) { s.recovers = true }) }

// Need makes [Run] and [Do] return an error without calling the function if less than d is left of the execution's
// total (unless that is only observed), of an enclosing execution's total, or until the caller's deadline or
// TOOL_DEADLINE. The error is an [*Error] of [ErrTotal]; its Needed is d and its Limit is the time left. If exactly
// d is left, the function is called. Without a total or a deadline, or if d is 0 or less, Need does nothing. If the
// deadline has already passed, Run returns the same Error as without Need.
func Need(d time.Duration) Setting { return need(d) }

// A need is the Option that Need returns. Run looks for it among the options, as it does for a refusal.
type need time.Duration

func (need) apply(*settings) {}

func (need) setting() {}

// Refuse makes [Run] and [Do] return err without calling the function. It is for packages that create options from
// settings, such as package policy: the error of a setting that cannot be read becomes the outcome of the call.
// Refuse(nil) does nothing.
func Refuse(err error) Setting { return refusal{err} }

// A refusal is the Option that Refuse returns. Run looks for it among the options. A field in settings instead would
// make an Execution too large for its size class.
type refusal struct{ err error }

func (refusal) apply(*settings) {}

func (refusal) setting() {}
