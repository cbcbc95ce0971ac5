package main

import (
	"errors"
)

// A usageError reports a bad command line. The text may be empty: GNU timeout prints no message for a
// missing operand.
type usageError string

func (e usageError) Error() string { return string(e) }

var (
	errHelp    = errors.New("help requested")
	errVersion = errors.New("version requested")
)
