package simulate

import (
	"fmt"
	"strings"
	"syscall"
	"time"
)

// An Act is the action of one step of a process.
type Act string

// The acts. Those that name no field of a [Step] use none.
const (
	Write      Act = "write"      // N bytes to the descriptor FD
	Read       Act = "read"       // up to N bytes from descriptor 0; waits for them
	Sleep      Act = "sleep"      // for D
	Work       Act = "work"       // for D, using the processor
	Fork       Act = "fork"       // a child that runs Script
	Daemon     Act = "daemon"     // a child in a session of its own, whose parent is process 1
	Trap       Act = "trap"       // run Script whenever Signal comes
	Ignore     Act = "ignore"     // Signal
	Close      Act = "close"      // the descriptor FD
	Stop       Act = "stop"       // until SIGCONT comes; by Signal, as by the terminal, if there is one
	Await      Act = "await"      // the end of all children
	Unkillable Act = "unkillable" // no signal ends the process for D, from now on
	Say        Act = "say"        // N times Text, on the socket of the command
	Exit       Act = "exit"       // with the code N
	Die        Act = "die"        // of Signal
)

// A Step is one act of a process.
type Step struct {
	Do     Act            `json:"do"`
	FD     int            `json:"fd,omitempty"`
	N      int            `json:"n,omitempty"`
	D      time.Duration  `json:"d,omitempty"`
	Signal syscall.Signal `json:"signal,omitempty"`
	Text   string         `json:"text,omitempty"`
	Script Script         `json:"script,omitempty"`
}

// A Script is the list of the steps of a process from its start on. A process at the end of its script exits with
// code 0.
type Script []Step

// String returns the script in one line, as a shell would be told.
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
