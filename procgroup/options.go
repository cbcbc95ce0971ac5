package procgroup

import (
	"math"
	"os"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/command"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/terminal"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// An Option changes how a command is supervised. Options are data: [Limits], [Capture], [Stop], [Input],
// [Terminal], [Resources], [Activity], [Notify] and [Containment], whose zero values change nothing. If two of one
// type are given, the later one replaces the earlier one as a whole. Only a [WithOptions] adds its options to those
// of earlier ones. A nil Option is ignored.
type Option interface{ apply(*settings) }

func (l Limits) apply(s *settings)      { s.limits = l }
func (c Capture) apply(s *settings)     { s.capture = c }
func (o Stop) apply(s *settings)        { s.stop = o }
func (i Input) apply(s *settings)       { s.inputOption = i }
func (t Terminal) apply(s *settings)    { s.requestedTerminal = t }
func (r Resources) apply(s *settings)   { s.resources = r }
func (a Activity) apply(s *settings)    { s.activity = a }
func (n Notify) apply(s *settings)      { s.notify = n }
func (c Containment) apply(s *settings) { s.containment = c }
func (w withOptions) apply(s *settings) { s.options = append(s.options, w...) }

// settings are the options of a command.
type settings struct {
	limits            Limits
	capture           Capture
	stop              Stop
	inputOption       Input
	requestedTerminal Terminal
	resources         Resources
	activity          Activity
	containment       Containment
	notify            Notify
	options           []timeout.Option

	// The values of the options, after they have been checked.
	killGrace  time.Duration
	stopSignal syscall.Signal
	closing    os.Signal      // nil: none
	terminal   *terminal.Size // nil: none
	kind       proctree.Kind  // of containment
	err        error          // the error of an invalid option
}

func newSettings(opts []Option) settings {
	var s settings
	for _, o := range opts {
		if o != nil {
			o.apply(&s)
		}
	}
	s.killGrace = s.stop.grace(s.limits.Grace)
	s.terminal = s.requestedTerminal.size()
	for _, check := range []func() error{
		func() (err error) { s.stopSignal, s.closing, err = s.stop.signals(); return err },
		func() (err error) { s.kind, err = s.containment.kind(); return err },
		s.capture.check, s.resources.check,
	} {
		if err := check(); err != nil && s.err == nil {
			s.err = err
		}
	}
	return s
}

// grace returns how long the call may go on after a limit: the kill grace, and the second in which everything else is
// done.
func (s *settings) grace() time.Duration {
	return s.killGrace + min(collectTime, math.MaxInt64-s.killGrace)
}

// Limits are the limits of a command, which runs as an execution of package timeout; the fields are those of
// [timeout.Config]. If the context belongs to an execution, the command's execution is nested in it: output is a
// heartbeat for both, and the limit that fires first stops the command. Without Limits, or with the zero Limits,
// only the limits of enclosing executions apply.
//
// If Grace is not 0, the kill grace is at most 1 s less than it, unless [Stop] has a Grace. A negative Grace means
// no kill grace. With a Reserve, [Stop] can have a Closing signal, which tells the command when its time is running
// out.
type Limits timeout.Config

type withOptions []timeout.Option

// WithOptions passes options of package timeout to the command's execution. All of them apply.
//
//   - [timeout.WithName] names the command in messages, errors, logs, hooks and profiles. Without it,
//     or with an empty name, the name is the base name of the command's path.
//   - [timeout.WithHooks] adds hooks. Started is called right before the command is started, Finished
//     when the result is complete, right before Wait returns, and also if the command could not be
//     started. Abandoned and Returned are not called, because no command is abandoned.
//   - [timeout.WithLogger] sets the logger. It also gets a warning if the end of the command left
//     survivors, a stream that another process still holds, or output that cmd.Stdout or cmd.Stderr
//     did not get. The stack of a limit is a table of the command's processes.
//   - [timeout.WithObserveOnly] reports when a limit of [Limits] expires, but does not enforce it.
//   - With [timeout.Need], Start returns a [*timeout.Error], and starts nothing, if less time is left.
//   - [timeout.WithClock] sets the clock of the limits. All waiting for processes uses the system clock.
//
// WithOptions panics with a [*timeout.ConfigError] if opts has a [timeout.Config], because limits are set with
// [Limits], or [timeout.WithRecover], because a command has no function that could panic.
func WithOptions(opts ...timeout.Option) Option {
	if err := command.Check(opts); err != nil {
		panic(err)
	}
	return withOptions(opts)
}
