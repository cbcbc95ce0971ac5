//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package terminal

import "golang.org/x/sys/unix"

const (
	getTermios = unix.TIOCGETA
	disabled   = 0xff // a byte that does nothing
	// maxLine is how many bytes of a line a terminal keeps at least, MAX_CANON. No call says how many it does.
	maxLine = 255
)

func takeMoreSignals(take func(int, effect, string)) {
	take(unix.VDSUSP, signal, "it stops the processes in the foreground when they read it")
}
