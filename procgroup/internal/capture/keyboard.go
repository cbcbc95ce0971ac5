package capture

import (
	"os"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/terminal"
)

// A Keyboard, as the Stdin of an exec.Cmd, lets the program write to the command at any time. R and W are the ends of a
// pipe. Without a terminal the command reads R, and Write writes to W. With a terminal Write types there. In both cases
// the input ends when W is closed.
type Keyboard struct {
	R, W   *os.File
	typist *terminal.Typist     // nil if the command has no terminal
	size   func() terminal.Size // nil if the command has no terminal
}

// Read reads from R. Nothing calls it: it makes a Keyboard an io.Reader, as the Stdin of an exec.Cmd must be.
func (k *Keyboard) Read(p []byte) (int, error) { return k.R.Read(p) }

// Write writes p to the pipe, or types it at the terminal. A terminal acts on some bytes, such as Ctrl-C, and does not
// pass them on. If keys is true, they are typed too. Otherwise Write stops at the first one, with the error of
// Config.Refused.
func (k *Keyboard) Write(p []byte, keys bool) (int, error) {
	if k.typist == nil {
		return k.W.Write(p)
	}
	return k.typist.Write(0, p, keys, false)
}

// SetWriteDeadline sets the deadline of Write; see os.File.SetWriteDeadline.
func (k *Keyboard) SetWriteDeadline(t time.Time) error {
	if k.typist == nil {
		return k.W.SetWriteDeadline(t)
	}
	return k.typist.SetWriteDeadline(t)
}

// Size returns the size of the terminal in characters, or 0, 0 if there is none.
func (k *Keyboard) Size() (rows, cols int) {
	if k.size == nil {
		return 0, 0
	}
	size := k.size()
	return int(size.Rows), int(size.Cols)
}
