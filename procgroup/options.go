package procgroup

import (
	"math"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Defaults of the options.
const (
	// DefaultKillGrace is the time between the request to end and the kill when a
	// limit has fired.
	DefaultKillGrace = 5 * time.Second
	// DefaultMaxOutput is how many bytes are kept of each stream, and of both
	// together.
	DefaultMaxOutput = 1 << 20
)

// Unlimited as the argument of [WithMaxOutput] keeps all output.
const Unlimited = math.MaxInt

// An Option changes how a command is supervised. Where an option is given twice, the
// last one counts.
type Option interface{ apply(*settings) }

type optionFunc func(*settings)

func (f optionFunc) apply(s *settings) { f(s) }

type settings struct {
	limits      *timeout.Config // nil: those of the execution around, or none
	killGrace   time.Duration
	graceGiven  bool
	abortGrace  time.Duration
	maxOutput   int
	onePipe     bool
	onOutput    func(Chunk)
	containment Containment
	orphans     bool
	stopSignal  syscall.Signal
	activity    Activity
	options     []timeout.Option
	err         error // of an option
}

func newSettings(opts []Option) settings {
	s := settings{killGrace: DefaultKillGrace, maxOutput: DefaultMaxOutput, stopSignal: syscall.SIGTERM}
	for _, o := range opts {
		if o != nil {
			o.apply(&s)
		}
	}
	if s.limits != nil && s.limits.Grace != 0 && !s.graceGiven {
		s.killGrace = min(s.killGrace, max(max(s.limits.Grace, 0)-collectTime, 0))
	}
	return s
}

// grace is what a limit leaves the call: the kill grace, and the second in which the rest
// is done.
func (s *settings) grace() time.Duration {
	return s.killGrace + min(collectTime, math.MaxInt64-s.killGrace)
}

// WithLimits runs the command as an execution of its own with these limits. Within an
// execution of package timeout it is a nested one: its output is a heartbeat for both,
// and whichever limit comes first stops it. Without this option the limits of the
// execution of the context apply; where there is none, only the context bounds the
// command. Both limits 0 is the latter, inside an execution too.
//
// The Grace of c, where it is not 0, bounds the kill grace to 1 s less, unless
// [WithKillGrace] is given. A negative one is none.
func WithLimits(c timeout.Config) Option {
	return optionFunc(func(s *settings) { s.limits = &c })
}

// WithOptions gives options of package timeout to the execution of the command. Given more
// than once, all of them apply.
//
//   - [timeout.WithName] names the command in messages, as in "TLC process timed out after
//     120000ms.", in errors, logs, hooks and profiles. Without it, or with an empty name, it
//     is the base name of the command's path.
//   - [timeout.WithHooks] has hooks called as the command goes on. Started is called right
//     before the command is started, and Finished when the result is there, right before
//     Wait returns, also where the command could not be started. The Err that Finished gets
//     is what Wait returns, as with the hooks of [timeout.Watch]; the rest of its Snapshot is
//     as it was when the command ended or was stopped. Abandoned and Returned are not called,
//     because no command is abandoned.
//   - [timeout.WithLogger] logs what it logs of a function and, as a warning, what the end of
//     the command left to be desired: survivors, a stream that somebody still holds, output
//     that cmd.Stdout or cmd.Stderr did not get. What the processes were doing when a limit
//     fired is the stack in the line that says so.
//   - [timeout.WithObserveOnly] has the limits of [WithLimits] judged and reported, and not
//     enforced.
//   - [timeout.WithClock] is for the limits. The kill grace, and all else that waits for
//     processes, is on the system's clock.
//
// A [timeout.Config], for which there is [WithLimits], and [timeout.WithRecover] are errors of
// Start, a [*timeout.ConfigError].
func WithOptions(opts ...timeout.Option) Option {
	return optionFunc(func(s *settings) { s.options = append(s.options, opts...) })
}

// WithKillGrace sets how long the tree may take to end by itself when a limit has
// fired, before it is killed. 0 or less kills at once. Without this option it is
// [DefaultKillGrace]. Keep it at least a second below the grace of the execution
// around, or that will not wait for the result.
func WithKillGrace(d time.Duration) Option {
	return optionFunc(func(s *settings) { s.killGrace, s.graceGiven = max(d, 0), true })
}

// WithAbortGrace is [WithKillGrace] for an abort: when the caller's context is
// cancelled for another reason than a limit. Without this option it is 0: the tree is
// killed at once, with SIGKILL on Unix. Give it to tools that a kill leaves in disorder:
// terraform, say, which then neither writes its state nor unlocks it.
func WithAbortGrace(d time.Duration) Option {
	return optionFunc(func(s *settings) { s.abortGrace = max(d, 0) })
}

// WithMaxOutput sets how many bytes are kept of each stream, and of both together: the
// last ones. What is dropped is counted exactly. 0 or less keeps nothing, [Unlimited]
// everything. Without this option it is [DefaultMaxOutput]. Memory is used as output
// comes, not in advance.
func WithMaxOutput(bytes int) Option {
	return optionFunc(func(s *settings) { s.maxOutput = max(bytes, 0) })
}

// WithOnePipe with true gives the command one pipe for stdout and stderr, as 2>&1 does in
// a shell. [Result.Combined] then has the output in the order in which it was written;
// with a pipe for each, it is the order in which it was read, and what a command writes
// to both within a moment may change places. The price is that nobody can tell the
// streams apart: all output is that of stdout, in the Result, in cmd.Stdout and in
// [WithOutput].
//
// It is so anyway where cmd.Stdout and cmd.Stderr are the same writer, unless its type
// cannot be compared. A cmd.Stderr other than cmd.Stdout is an error of Start, a
// [*timeout.ConfigError].
func WithOnePipe(one bool) Option {
	return optionFunc(func(s *settings) { s.onePipe = one })
}

// WithOutput calls fn with the output as it comes. The calls are made one at a time, on
// a goroutine of their own, and none begins after the command's Wait has returned.
//
// A slow fn delays neither the command nor its end: up to 1 MiB waits for it, and where
// more comes, that is skipped and counted in the next [Chunk]. At the end it gets what
// is left of the second in which output is collected; Result.Skipped counts all that it
// did not get. Use cmd.Stdout for a consumer that must get every byte and may slow the
// command down.
//
// A panic in fn, or [runtime.Goexit], kills the tree: the command is aborted, and the
// error holds a [*timeout.PanicError] or [timeout.ErrGoexit]. nil is no callback.
func WithOutput(fn func(Chunk)) Option {
	return optionFunc(func(s *settings) { s.onOutput = fn })
}

// WithContainment chooses how the tree is held together, see [Containment]. Without
// this option it is [Auto]. Any other that this system does not offer is an error of
// Start, in whose tree [errors.ErrUnsupported] is found.
func WithContainment(c Containment) Option {
	return optionFunc(func(s *settings) { s.containment = c })
}

// WithOrphans with true leaves alone what is still running when the command has ended
// by itself: a daemon that it started, say. Without it, or with false, everything is
// killed. After a timeout or an abort everything is killed in any case.
func WithOrphans(keep bool) Option {
	return optionFunc(func(s *settings) { s.orphans = keep })
}
