package procgroup

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const (
	defaultKillGrace = 5 * time.Second // the kill grace without a Stop.Grace
	collectTime      = 1 * time.Second // from the end of the kill grace until the call must have returned
)

// Stop says how a command is stopped, and which processes remain. It is an [Option]. With the zero Stop, each process
// of the tree gets SIGTERM and SIGCONT after a limit, and SIGKILL 5 s later; after an abort it gets SIGKILL at once.
// When a command has ended by itself, the processes that it leaves behind get SIGKILL without being asked to end.
//
// A Signal or Closing that the system does not have is a [*timeout.ConfigError] of Start. On Windows the only request
// to end is Ctrl-Break, which a command gets only if it shares a console with this program: SIGTERM and [os.Interrupt]
// both mean that, and [os.Kill] kills.
type Stop struct {
	// Signal is the signal that asks the tree to end, after a limit or after an abort with an AbortDelay; nil means
	// SIGTERM. SIGCONT follows it. SIGKILL kills the tree without a grace.
	Signal os.Signal
	// Grace is the kill grace: the time that the tree has to end after a limit, before it is killed. 0 means 5 s, or
	// less if [Limits] has a Grace; a negative value means that the tree is killed at once. Keep it at least a second
	// shorter than the grace of the enclosing execution, which otherwise does not wait for the result.
	Grace time.Duration
	// AbortDelay is the time that the tree has to end after an abort, before it is killed. If it is 0 or less, the tree
	// is killed at once, without being asked to end. Set it for a command that a kill leaves in disorder: terraform,
	// for example, would neither write its state nor release its lock.
	AbortDelay time.Duration
	// Closing is a signal that is sent once to each process of the tree when the execution of the command is closing:
	// no more than the reserve is left of its total, of an enclosing total or of the caller's deadline; see
	// [timeout.Closing]. nil means that no signal is sent. A command that handles the signal can write its results and
	// end by itself. The signal does not stop the command: if the command dies of it, the Reason is [Exited], and
	// stopped processes are not continued. If the execution is closing when the command is started, the signal is sent
	// right after the start. It is not sent after the limit or the end. For a signal that no program can handle, Start
	// returns a [*timeout.ConfigError].
	Closing os.Signal
	// Orphans keeps the processes that are still running when the command has ended by itself, such as a daemon that it
	// has started. When the command is stopped, all of its processes are killed nevertheless.
	Orphans bool
	// Stacks makes Go, JVM and Python programs of the command write the stacks of their threads before a limit stops
	// the command. [Result.Stacks] and the Stack of the error contain the stacks. The package documentation says which
	// programs get a signal. On systems other than Linux it has no effect.
	Stacks bool
}

// grace returns the kill grace, which is never negative. ofLimits is the Grace of [Limits]: if it is set and s has no
// Grace, the kill grace and collectTime fit into ofLimits.
func (s *Stop) grace(ofLimits time.Duration) time.Duration {
	grace := s.Grace
	if grace == 0 {
		grace = defaultKillGrace
		if ofLimits != 0 {
			grace = min(grace, max(ofLimits, 0)-collectTime)
		}
	}
	return max(grace, 0)
}

// signal returns the signal that asks the tree to end. The error is a [*timeout.ConfigError] for s.Signal or s.Closing.
func (s *Stop) signal() (ask proctree.Signal, err error) {
	var none proctree.Signal
	ask = syscall.SIGTERM
	if s.Signal != nil {
		number, ok := signalNumber(s.Signal)
		if ask = number; !ok || number == none {
			return none, &timeout.ConfigError{Key: "Stop.Signal", Value: signalText(s.Signal), Accepted: "a " + someSignals}
		}
	}
	if s.Closing != nil {
		if number, ok := signalNumber(s.Closing); !ok || number == none || !canHandle(number) {
			return none, &timeout.ConfigError{Key: "Stop.Closing", Value: signalText(s.Closing), Accepted: "a " + someSignals + " that a program can handle"}
		}
	}
	return ask, nil
}

// signalText describes a signal in an error. It calls no method of a type of the caller, which may panic or block.
func signalText(sig os.Signal) string {
	if number, ok := sig.(proctree.Signal); ok {
		return number.String()
	}
	return fmt.Sprintf("%T", sig)
}

// signalNumber returns the number of sig, and reports whether this system has such a signal.
func signalNumber(sig os.Signal) (proctree.Signal, bool) {
	number, ok := sig.(proctree.Signal)
	return number, ok && hasSignal(number)
}
