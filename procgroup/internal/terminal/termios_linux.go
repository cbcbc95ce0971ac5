package terminal

import "golang.org/x/sys/unix"

const (
	getTermios = unix.TCGETS
	disabled   = 0 // a byte that does nothing
	// maxLine is how many bytes of a line, without its end, a terminal keeps. It drops the rest, and says nothing.
	maxLine = 4095
)

func takeMoreSignals(func(int, effect, string)) {}
