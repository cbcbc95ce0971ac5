package main

import (
	"errors"
	"syscall"
)

// Exit codes of deadline itself.
const (
	exitFailed        = 125 // bad usage, or a failure of deadline
	exitCannotExecute = 126
	exitNotFound      = 127
)

// An ending describes how the program ends.
type ending struct {
	code    int
	signal  syscall.Signal // if not 0, the program ends by this signal instead, as the command did
	limited bool           // a limit fired, so code is kept even if a message could not be written
}

// A usageError reports an invalid command line. The text is empty for a missing operand, for which GNU timeout prints
// no message.
type usageError string

func (e usageError) Error() string { return string(e) }

// Errors of parse for --help and --version.
var (
	errHelp    = errors.New("help requested")
	errVersion = errors.New("version requested")
)
