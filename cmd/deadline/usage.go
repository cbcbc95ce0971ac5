package main

import (
	"errors"
)

// A usageError reports an invalid command line. The text is empty for a missing operand, for which GNU timeout prints
// no message.
type usageError string

func (e usageError) Error() string { return string(e) }

// Errors of parse for --help and --version.
var (
	errHelp    = errors.New("help requested")
	errVersion = errors.New("version requested")
)
