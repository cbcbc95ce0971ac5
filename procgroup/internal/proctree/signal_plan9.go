package proctree

import "syscall"

// Signal is the type of signals on Plan 9, which are texts.
type Signal = syscall.Note
