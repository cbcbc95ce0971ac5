package procgroup

import (
	"math"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// The defaults of the options; their documentation says the values.
const (
	defaultKillGrace = 5 * time.Second
	defaultMaxOutput = 1 << 20
)

// An Option changes how a command is supervised. If an option is given more than once, the
// last one applies; [WithOptions] and [WithInputWait] add to those before them.
type Option interface{ apply(*settings) }

type optionFunc func(*settings)

func (f optionFunc) apply(s *settings) { f(s) }

type settings struct {
	limits      *timeout.Config // nil: those of the enclosing execution, or none
	killGrace   time.Duration
	abortGrace  time.Duration
	maxHead     int
	maxOutput   int
	outputLimit int64
	spillDir    *SpillDir
	maxSpill    int64
	onePipe     bool
	terminal    *capture.Size // nil: none
	onOutput    func(Chunk)
	containment Containment
	kind        proctree.Kind // of containment
	orphans     bool
	stopSignal  syscall.Signal
	closing     *os.Signal // nil: none
	resources   proctree.Limits
	badResource error
	activity    Activity
	onInputWait []func(InputWait)
	stopOnInput bool
	stacks      bool
	unattended  bool
	options     []timeout.Option
	err         error // of an option
}

func newSettings(opts []Option) settings {
	s := settings{stopSignal: syscall.SIGTERM}
	for _, o := range opts {
		if o != nil {
			o.apply(&s)
		}
	}
	if s.killGrace == 0 {
		s.killGrace = defaultKillGrace
		if s.limits != nil && s.limits.Grace != 0 {
			s.killGrace = min(s.killGrace, max(s.limits.Grace, 0)-collectTime)
		}
	}
	if s.maxOutput == 0 {
		s.maxOutput = defaultMaxOutput
	}
	s.killGrace, s.abortGrace, s.maxOutput = max(s.killGrace, 0), max(s.abortGrace, 0), max(s.maxOutput, 0)
	kind, err := s.containment.kind()
	if s.kind = kind; s.err == nil {
		s.err = err
	}
	if s.err == nil {
		s.err = s.checkClosing()
	}
	if s.err == nil {
		s.err = s.badResource
	}
	return s
}

// refuseNegative refuses a negative number of bytes.
func (s *settings) refuseNegative(key string, bytes int64) {
	if bytes < 0 && s.err == nil {
		s.err = &timeout.ConfigError{Key: key, Value: strconv.FormatInt(bytes, 10), Accepted: "0 or more bytes"}
	}
}

// grace is how long the call may go on after a limit: the kill grace, and the second in which
// everything else is done.
func (s *settings) grace() time.Duration {
	return s.killGrace + min(collectTime, math.MaxInt64-s.killGrace)
}

// WithLimits runs the command as an execution with the limits of c. If the context belongs to an
// execution, the command's execution is nested in it: output is a heartbeat for both, and the limit
// that fires first stops the command.
//
// Without WithLimits the limits of the context's execution apply. If the context belongs to no
// execution, or both limits of c are 0, the command has no limits but those of enclosing
// executions.
//
// If c.Grace is not 0, the kill grace is at most 1 s less than c.Grace, unless [WithKillGrace] is
// given. A negative c.Grace means no kill grace. With a c.Reserve, [WithClosingSignal] tells the
// command when its time is running out.
func WithLimits(c timeout.Config) Option {
	return optionFunc(func(s *settings) { s.limits = &c })
}

// WithOptions passes options of package timeout to the command's execution. If WithOptions is
// given more than once, all the options apply.
//
//   - [timeout.WithName] names the command in messages, as in "TLC process timed out after
//     120000ms.", and in errors, logs, hooks and profiles. Without it, or with an empty name,
//     the name is the base name of the command's path.
//   - [timeout.WithHooks] adds hooks. Started is called right before the command is started.
//     Finished is called when the result is complete, right before Wait returns, and also if the
//     command could not be started. The Snapshot has the error that Wait returns, and otherwise the
//     state of the moment when the command ended or was stopped. Abandoned and Returned are not
//     called, because no command is abandoned.
//   - [timeout.WithLogger] sets the logger. In addition to what is logged for a function, it
//     gets a warning if the end of the command left survivors, a stream that another process
//     still holds, or output that cmd.Stdout or cmd.Stderr did not get. If a limit fires, the
//     stack in the log record is a table of the command's processes.
//   - [timeout.WithObserveOnly] reports when a limit of [WithLimits] expires, but does not
//     enforce it.
//   - With [timeout.Need], Start returns a [*timeout.Error], and starts nothing, if less time is
//     left.
//   - [timeout.WithClock] sets the clock of the limits. The kill grace, and all other waiting
//     for processes, uses the system clock.
//
// If opts has a [timeout.Config] or [timeout.WithRecover], Start returns a [*timeout.ConfigError];
// set limits with [WithLimits].
func WithOptions(opts ...timeout.Option) Option {
	return optionFunc(func(s *settings) { s.options = append(s.options, opts...) })
}

// WithKillGrace sets the kill grace: how long the process tree may take to end by itself
// after a limit has fired and before it is killed. Keep it at least a second shorter than the
// grace of the enclosing execution, which otherwise does not wait for the result. A negative
// d kills at once; 0 means 5 s.
func WithKillGrace(d time.Duration) Option {
	return optionFunc(func(s *settings) { s.killGrace = d })
}

// WithAbortGrace sets how long the process tree may take to end by itself after an abort, when the
// caller's context is cancelled for a reason other than a limit. Use it for a tool that a kill
// would leave in disorder: terraform, for example, would neither write its state nor release its
// lock. 0 or less means no grace: the tree is killed at once.
func WithAbortGrace(d time.Duration) Option {
	return optionFunc(func(s *settings) { s.abortGrace = d })
}

// WithMaxOutput sets how many bytes are kept of each stream, and of both streams together.
// The last bytes are kept, and the number of dropped bytes is exact. Memory is used as output
// arrives, not in advance. [math.MaxInt] keeps everything and a negative number nothing; 0
// means 1 MiB.
func WithMaxOutput(bytes int) Option {
	return optionFunc(func(s *settings) { s.maxOutput = bytes })
}

// WithHead sets how many bytes are kept of the beginning of each stream, and of both streams
// together, in addition to the last bytes that [WithMaxOutput] keeps. The first lines often say
// with which arguments a command was called, or which error was the first. [Output.Text] cuts both
// parts at line ends, and says how much is left out between them. If bytes is negative, Start
// returns a [*timeout.ConfigError]; 0, which is the default, keeps no beginning.
func WithHead(bytes int) Option {
	return optionFunc(func(s *settings) {
		s.maxHead = bytes
		s.refuseNegative("WithHead", int64(bytes))
	})
}

// WithOnePipe gives the command a single pipe for stdout and stderr, as 2>&1 does in a shell.
// [Result.Combined] then has the output in the order in which it was written. With two pipes
// it has the output in the order in which it was read; pieces that the command writes to both
// streams within a short time may change places.
//
// With a single pipe the streams cannot be distinguished. All output counts as stdout: in the
// Result, in cmd.Stdout, and in the chunks of [WithOutput].
//
// There is a single pipe without this option if cmd.Stdout and cmd.Stderr are the same writer
// and its type is comparable. If cmd.Stderr is set and differs from cmd.Stdout, Start returns a
// [*timeout.ConfigError].
func WithOnePipe() Option {
	return optionFunc(func(s *settings) { s.onePipe = true })
}

// WithOutput calls fn with the output as it arrives. The calls are made one at a time, on a
// separate goroutine; none begins after Wait has returned.
//
// A slow fn delays neither the command nor its end. Up to 1 MiB of output waits for fn; if more
// arrives, the waiting output is skipped, and the next [Chunk] has the number of skipped bytes.
// After the command has ended, fn gets output for at most a second; [Result.Skipped] is the number
// of bytes that it did not get. If every byte is needed, set cmd.Stdout and cmd.Stderr instead: a
// slow writer slows the command down.
//
// If fn panics or calls [runtime.Goexit], the command is aborted, and the error wraps a
// [*timeout.PanicError] or [timeout.ErrGoexit]. A nil fn is ignored.
func WithOutput(fn func(Chunk)) Option {
	return optionFunc(func(s *settings) { s.onOutput = fn })
}

// WithContainment chooses how the processes of the command are found and killed. If the
// system does not offer c, Start returns an error that wraps [errors.ErrUnsupported]; if c is
// unknown, a [*timeout.ConfigError]. The zero Containment, which is the default, means the
// best one available.
func WithContainment(c Containment) Option {
	return optionFunc(func(s *settings) { s.containment = c })
}

// WithOrphans keeps the processes that are still running when the command has ended by
// itself, such as a daemon that it has started. Without this option they are killed. After a
// timeout or an abort they are always killed.
func WithOrphans() Option {
	return optionFunc(func(s *settings) { s.orphans = true })
}
