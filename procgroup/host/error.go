package host

import (
	"fmt"
	"os"
)

// An EndedError is the cause of a context of [Context] or [ContextOf] that is done because the host, or a process
// between the host and this program, has ended.
type EndedError struct {
	// Host is the host that was watched, or the one that [ContextOf] did not find.
	Host ProcessInfo
	// Process is the process that ended: the host, or a process between the host and this program.
	Process ProcessInfo
	// Signal is the signal that killed Process. It is nil if no signal did, or if the system does not report it.
	Signal os.Signal
	// ExitCode is the exit code of Process. It is -1 if Process was killed by a signal, or if the system does not
	// report the code.
	ExitCode int
}

// Error says which process ended, and how.
func (e *EndedError) Error() string {
	how := "has ended"
	switch {
	case e.Signal != nil:
		how = "was killed by a signal: " + e.Signal.String()
	case e.ExitCode >= 0:
		how = fmt.Sprintf("has ended with exit code %d", e.ExitCode)
	}
	if e.Process == e.Host {
		return fmt.Sprintf("the host, %v, %s", e.Host, how)
	}
	return fmt.Sprintf("%v, between the host, %v, and this program, %s", e.Process, e.Host, how)
}

// An ending describes how a process ended.
type ending struct {
	signal os.Signal // the signal that killed it; nil if no signal did, or if it is not known
	code   int       // the exit code; -1 if a signal killed the process, or if the code is not known
}

// unknown is the ending of a process about which the system reports nothing.
var unknown = ending{nil, -1}
