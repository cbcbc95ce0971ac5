//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// modesOf returns the present modes of a terminal. If they cannot be read, it returns the zero modes, as of a terminal
// that passes on every byte.
func modesOf(master *os.File) (m modes) {
	var t *unix.Termios
	if err := control(master, func(fd int) (err error) {
		t, err = unix.IoctlGetTermios(fd, getTermios)
		return err
	}); err != nil {
		return m
	}
	take := func(index int, e effect, does string) {
		if b := t.Cc[index]; b != disabled {
			m.keys = append(m.keys, key{b, does, e})
		}
	}
	m.strips, m.keeps = t.Iflag&unix.ISTRIP != 0, t.Lflag&unix.NOFLSH != 0
	if m.signals = t.Lflag&unix.ISIG != 0; m.signals {
		take(unix.VINTR, interrupt, "it interrupts the processes in the foreground")
		take(unix.VQUIT, signal, "it makes the processes in the foreground quit")
		take(unix.VSUSP, signal, "it stops the processes in the foreground")
		takeMoreSignals(take)
	}
	if t.Iflag&unix.IXON != 0 {
		take(unix.VSTOP, stop, "it stops the output")
		take(unix.VSTART, goOn, "it lets output that was stopped go on")
	}
	if t.Iflag&unix.IGNCR != 0 {
		m.keys = append(m.keys, key{'\r', "it drops carriage returns", other})
	} else if t.Iflag&unix.ICRNL != 0 {
		m.newline = '\r'
	}
	if m.canonical = t.Lflag&unix.ICANON != 0; !m.canonical {
		return m
	}
	m.maxLine = maxLine
	take(unix.VEOF, end, "it ends the input")
	take(unix.VERASE, erase, "it takes a character back")
	take(unix.VKILL, kill, "it takes the line back")
	if t.Lflag&unix.IEXTEN != 0 {
		take(unix.VWERASE, erase, "it takes a word back")
		take(unix.VREPRINT, other, "it shows the line again")
		take(unix.VLNEXT, quote, "it quotes the byte that follows")
	}
	return m
}
