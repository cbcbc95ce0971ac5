package proctree

import "syscall"

// A Signal is a signal as the system has it: a text.
type Signal = syscall.Note
