package procgroup

import (
	"cmp"
	"math"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/command"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/terminal"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// An Option changes how a command is supervised. The types [Limits], [Capture], [Stop], [Input], [Terminal],
// [Resources], [Activity], [Notify] and [Containment] are Options; their zero values change nothing. If two Options
// have the same type, the later one replaces the earlier one as a whole. Only the options of [WithOptions] add up over
// several calls. A nil Option is ignored.
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

// settings holds the options of a command.
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

	// newSettings derives these from the options above.
	killGrace  time.Duration
	stopSignal proctree.Signal
	terminal   *terminal.Size // nil if the command gets no terminal
	kind       proctree.Kind  // the containment
	err        error          // the error of the first invalid option, or nil
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
	var badSignal, badKind error
	s.stopSignal, badSignal = s.stop.signal()
	s.kind, badKind = s.containment.kind()
	s.err = cmp.Or(badSignal, badKind, s.capture.check(), s.resources.check())
	return s
}

// grace returns the longest time from a limit to the return of the call: the kill grace plus collectTime.
func (s *settings) grace() time.Duration {
	return s.killGrace + min(collectTime, math.MaxInt64-s.killGrace)
}

// Limits limits a command, which runs as an execution of package timeout; the fields are those of [timeout.Config]. If
// the context belongs to an execution, the command's execution is nested in it: output is a heartbeat for both, and the
// limit that fires first stops the command. Without Limits, or with the zero Limits, only the limits of enclosing
// executions apply.
//
// If Grace is positive and [Stop] has no Grace, the kill grace is 1 s shorter than Grace, but from 0 to 5 s. A negative
// Grace means no kill grace, unless [Stop] has a Grace. With a Reserve, the Closing signal of [Stop] is sent when no
// more than the Reserve is left of the total limit.
type Limits timeout.Config

type withOptions []timeout.Option

// WithOptions returns an [Option] that passes options of package timeout to the command's execution.
//
//   - [timeout.WithName] names the command in messages, errors, logs, hooks and profiles. Without it, or with an empty
//     name, the name is the base name of the command's path, without ".exe".
//   - [timeout.WithHooks] adds hooks. Started is called right before the command is started, Finished when the result
//     is complete, right before Wait returns, and also if the command could not be started. Abandoned and Returned are
//     not called, because no command is abandoned.
//   - [timeout.WithLogger] sets the logger. It also gets a warning about processes that outlived the command, except
//     those that Orphans keeps, about a stream that another process still held, about questions that the system did not
//     answer, and about output that cmd.Stdout or cmd.Stderr did not get. The stack of a limit is a table of the
//     command's processes.
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
