package simulate

import (
	"fmt"
	"strings"
	"syscall"
	"time"
)

// An Act is the action of one step of a process.
type Act string

// The acts. FD, N, D, Signal, Text and Script are the fields of the [Step].
const (
	Write      Act = "write"      // writes N bytes to the descriptor FD
	Read       Act = "read"       // waits for input, and reads up to N bytes of it from descriptor 0
	Sleep      Act = "sleep"      // sleeps for D
	Work       Act = "work"       // uses the processor for D
	Fork       Act = "fork"       // starts a child that runs Script
	Daemon     Act = "daemon"     // starts a child that runs Script in its own session, with process 1 as its parent
	Trap       Act = "trap"       // makes each later Signal run Script
	Ignore     Act = "ignore"     // ignores Signal from now on
	Close      Act = "close"      // closes the descriptor FD
	Stop       Act = "stop"       // stops the process until SIGCONT; SIGTTIN or SIGTTOU as Signal means: by the terminal
	Await      Act = "await"      // waits for the end of all children
	Unkillable Act = "unkillable" // lets no signal end the process for D from now on
	Say        Act = "say"        // sends Text N times to the socket of the command
	Exit       Act = "exit"       // exits with the code N
	Die        Act = "die"        // kills the process with Signal, as soon as it is not unkillable
)

// A Step is one act of a process, with its operands.
type Step struct {
	Do     Act            `json:"do"`
	FD     int            `json:"fd,omitempty"`
	N      int            `json:"n,omitempty"`
	D      time.Duration  `json:"d,omitempty"`
	Signal syscall.Signal `json:"signal,omitempty"`
	Text   string         `json:"text,omitempty"`
	Script Script         `json:"script,omitempty"`
}

// A Script lists the steps of a process. A process exits with code 0 at the end of its script.
type Script []Step

// String returns the steps in one line, separated by "; ".
func (s Script) String() string {
	var b strings.Builder
	for i, step := range s {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(step.String())
	}
	return b.String()
}

// String returns the step as a word and its operands.
func (s Step) String() string {
	switch s.Do {
	case Write:
		return fmt.Sprintf("write %d to %d", s.N, s.FD)
	case Read, Exit:
		return fmt.Sprintf("%s %d", s.Do, s.N)
	case Sleep, Work, Unkillable:
		return fmt.Sprintf("%s %v", s.Do, s.D)
	case Say:
		return fmt.Sprintf("say %d times %q", s.N, s.Text)
	case Fork, Daemon:
		return fmt.Sprintf("%s {%v}", s.Do, s.Script)
	case Trap:
		return fmt.Sprintf("trap {%v} on %v", s.Script, s.Signal)
	case Ignore, Die:
		return fmt.Sprintf("%s %v", s.Do, s.Signal)
	case Stop:
		if s.Signal != 0 {
			return fmt.Sprintf("stop by %v", s.Signal)
		}
	case Close:
		return fmt.Sprintf("close %d", s.FD)
	}
	return string(s.Do)
}
