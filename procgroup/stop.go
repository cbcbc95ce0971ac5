package procgroup

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// defaultKillGrace is the kill grace, unless a Stop says otherwise. collectTime is what follows it: in this time the
// output is collected, and the call returns.
const (
	defaultKillGrace = 5 * time.Second
	collectTime      = 1 * time.Second
)

// Stop says how a command is stopped, and what remains. It is an [Option]. With the zero Stop, each process of the tree
// gets SIGTERM and SIGCONT after a limit, and SIGKILL 5 s later; after an abort it gets SIGKILL at once; and nothing
// remains of a command that has ended by itself.
//
// A Signal or Closing that the system does not have is a [*timeout.ConfigError] of Start. On Windows the only
// request to end is Ctrl-Break, which a command gets only if it shares a console with this program: SIGTERM and
// [os.Interrupt] both mean that, and [os.Kill] kills.
type Stop struct {
	// Signal asks the tree to end after a limit, or an abort with a delay; nil means SIGTERM. SIGCONT follows it. SIGKILL
	// kills at once.
	Signal os.Signal
	// Grace is the kill grace: how long the tree may take to end by itself after a limit, before it is killed; 0 means 5
	// s, and a negative value kills at once. Keep it at least a second shorter than the grace of the enclosing execution,
	// which otherwise does not wait for the result.
	Grace time.Duration
	// AbortDelay is how long the tree may take to end by itself after an abort, when the caller's context is cancelled for
	// a reason other than a limit; 0 or less means that it is killed at once, without being asked. It is for a tool that a
	// kill would leave in disorder: terraform, for example, would neither write its state nor release its lock.
	AbortDelay time.Duration
	// Closing is sent to each process of the tree, once, when the execution of the command is closing: no more than
	// the reserve is left of its total, of an enclosing total or of the caller's deadline; see [timeout.Closing].
	// nil means that nothing is sent. A command that handles it can write what it has and end by itself. It does
	// not stop the command: if the command dies of it, the Reason is [Exited], and stopped processes are not
	// continued. If the execution is closing when the command is started, it is sent right after the start; nothing
	// is sent after the limit or the end. A signal that no program can handle is a [*timeout.ConfigError] of Start.
	Closing os.Signal
	// Orphans keeps the processes that are still running when the command has ended by itself, such as a daemon that it
	// has started. After a timeout or an abort they are always killed.
	Orphans bool
	// Stacks makes the programs of the command write the stacks of their threads before a limit stops it, where they are
	// known to do that on a signal: Go, the JVM and Python. The stacks are in [Result.Stacks] and in the Stack of the
	// error. See the page of the package. Linux only; on other systems it has no effect.
	Stacks bool
}

// grace returns the kill grace. ofLimits is the Grace of the limits: if it is set and s has no Grace, the kill grace
// ends early enough for the output to be collected within ofLimits.
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

// signals returns the signal that asks to end, and the signal that is sent at the closing, or nil if there is none.
func (s *Stop) signals() (ask syscall.Signal, closing os.Signal, err error) {
	ask = syscall.SIGTERM
	if s.Signal != nil {
		number, ok := signalNumber(s.Signal)
		if ask = number; !ok || number == 0 {
			return 0, nil, &timeout.ConfigError{Key: "Stop.Signal", Value: signalText(s.Signal), Accepted: "a " + someSignals}
		}
	}
	if s.Closing != nil {
		if number, ok := signalNumber(s.Closing); !ok || number == 0 || !canHandle(number) {
			return 0, nil, &timeout.ConfigError{Key: "Stop.Closing", Value: signalText(s.Closing), Accepted: "a " + someSignals + " that a program can handle"}
		}
	}
	return ask, s.Closing, nil
}

// signalText describes a signal that is not accepted. A type of the caller's is named, and none of its methods called.
func signalText(sig os.Signal) string {
	if number, ok := sig.(syscall.Signal); ok {
		return number.String()
	}
	return fmt.Sprintf("%T", sig)
}

// signalNumber returns the number of sig, and reports whether this system has such a signal.
func signalNumber(sig os.Signal) (syscall.Signal, bool) {
	number, ok := sig.(syscall.Signal)
	return number, ok && hasSignal(number)
}
