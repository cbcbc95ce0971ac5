package simulate

import (
	"fmt"
	"reflect"
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

// String returns the steps, separated by "; ". It is one line, unless a Text contains a line end.
func (s Script) String() string {
	var steps []string
	for _, step := range s {
		steps = append(steps, step.String())
	}
	return strings.Join(steps, "; ")
}

// String returns the act and its operands that are not zero.
func (s Step) String() string {
	text := string(s.Do)
	for _, operand := range []any{s.FD, s.N, s.D, s.Signal, s.Text} {
		if !reflect.ValueOf(operand).IsZero() {
			text += fmt.Sprintf(" %v", operand)
		}
	}
	if s.Script != nil {
		text += " {" + s.Script.String() + "}"
	}
	return text
}
