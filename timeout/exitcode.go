package timeout

import (
	"errors"
	"io/fs"
	"os/exec"

	"github.com/tooldeadline/tooldeadline/internal/texts"
)

// ExitTimeout is the exit code for an execution that timed out, as with GNU timeout, and ExitAborted for one that
// was aborted: a shell reports 130 for a program that Ctrl-C ended.
const (
	ExitTimeout = 124
	ExitAborted = 130
)

// The exit codes that shells use for a command that could not be started, and, plus the number of the signal, for a
// command that a signal ended.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignal        = 128
)

// ExitCode returns 124 for a timeout, 130 for an abort, and 1 for an Error with no valid Kind.
func (e *Error) ExitCode() int {
	switch {
	case e.Timeout():
		return ExitTimeout
	case e.Kind == ErrAborted:
		return ExitAborted
	}
	return 1
}

// ExitCode returns the exit code with which a program should exit after err:
//
//   - 0 for nil
//   - 124 if an execution timed out and 130 if one was aborted, whatever else is in err's tree
//   - the result of an ExitCode() int method in err's tree, unless it is negative;
//     128+n for an *exec.ExitError of a process that signal n ended
//   - 127 for a command that was not found, 126 for one that cannot be executed, unless the system
//     lacks memory, processes or descriptors
//   - 1 for anything else, and for an error whose methods Is, As, Unwrap or ExitCode panic or do not
//     return within 1 s in all
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	if e, ok := err.(*Error); ok && e != nil {
		return e.ExitCode()
	}
	code := new(int)
	if !texts.Ask(func() { *code = exitCode(err) }) {
		return 1
	}
	return *code
}

func exitCode(err error) int {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.ExitCode()
	}
	var coder interface{ ExitCode() int }
	if errors.As(err, &coder) {
		if code := coder.ExitCode(); code >= 0 {
			return code
		}
		if e := (*exec.ExitError)(nil); errors.As(err, &e) {
			if sig, ok := endedBySignal(e); ok {
				return exitSignal + sig
			}
		}
		return 1
	}
	return startFailure(err)
}

// startFailure returns the exit code for an error from starting a command, and 1 for any other error. It ignores an
// fs.ErrNotExist that does not come from starting a command: the tool itself may have opened the missing file.
func startFailure(err error) int {
	var lookErr *exec.Error
	var pathErr *fs.PathError
	switch {
	case errors.As(err, &lookErr), errors.Is(err, exec.ErrNotFound):
	case errors.As(err, &pathErr) && pathErr.Op == "fork/exec":
	default:
		return 1
	}
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return exitNotFound
	case isShortage(err):
		return 1 // the command has no fault
	}
	return exitNotExecutable
}
