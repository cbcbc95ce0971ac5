package host

import (
	"fmt"
	"os"
)

// An EndedError is the cause of a context whose host has ended.
type EndedError struct {
	// Host is the host that was watched.
	Host ProcessInfo
	// Process is the process that ended: the host, or one between it and this program.
	Process ProcessInfo
	// Signal is the signal that killed Process. It is nil if there was none, or if it is not known.
	Signal os.Signal
	// ExitCode is the exit code of Process. It is -1 if Process was killed by a signal, or if the
	// code is not known.
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

// An ending says how a process ended.
type ending struct {
	signal os.Signal // nil if there was none, or if it is not known
	code   int       // -1 if it is not known
}

// unknown is an ending that the system does not report.
var unknown = ending{nil, -1}
