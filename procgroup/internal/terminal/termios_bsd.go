//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package terminal

import "golang.org/x/sys/unix"

const (
	getTermios = unix.TIOCGETA
	disabled   = 0xff // a byte that does nothing
	// maxLine is MAX_CANON, the number of bytes of a line that a terminal keeps at least. No system call tells how many
	// it keeps.
	maxLine = 255
)

func takeMoreSignals(take func(int, effect, string)) {
	take(unix.VDSUSP, signal, "it stops the processes in the foreground when they read it")
}
