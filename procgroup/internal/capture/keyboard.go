package capture

import (
	"os"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/terminal"
)

// A Keyboard is the standard input of a command that this program writes to: the command gets R, or, if it has a
// terminal, what is written is typed there. W is the other end of R, and its end is the end of the input.
type Keyboard struct {
	R, W   *os.File
	typist *terminal.Typist // nil if the command has no terminal
	size   func() terminal.Size
}

// Read reads from R. It makes a Keyboard an io.Reader, as the Stdin of an exec.Cmd must be, and is not called.
func (k *Keyboard) Read(p []byte) (int, error) { return k.R.Read(p) }

// Write writes p. If keys is set, bytes that the terminal takes for itself are typed.
func (k *Keyboard) Write(p []byte, keys bool) (int, error) {
	if k.typist == nil {
		return k.W.Write(p)
	}
	n, err := k.typist.Write(p, keys, false)
	return n, k.typist.Wrapped(err, 0)
}

// SetWriteDeadline sets the deadline of Write; see os.File.SetWriteDeadline.
func (k *Keyboard) SetWriteDeadline(t time.Time) error {
	if k.typist == nil {
		return k.W.SetWriteDeadline(t)
	}
	return k.typist.SetWriteDeadline(t)
}

// Size returns the size of the terminal, or 0 if there is none.
func (k *Keyboard) Size() (rows, cols int) {
	if k.size == nil {
		return 0, 0
	}
	size := k.size()
	return int(size.Rows), int(size.Cols)
}
