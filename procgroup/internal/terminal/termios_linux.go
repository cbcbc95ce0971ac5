package terminal

import "golang.org/x/sys/unix"

const (
	getTermios = unix.TCGETS
	disabled   = 0 // a byte that does nothing
	// maxLine is the number of bytes of a line, without its end, that a terminal keeps. It drops the rest silently.
	maxLine = 4095
)

func takeMoreSignals(func(int, effect, string)) {}
