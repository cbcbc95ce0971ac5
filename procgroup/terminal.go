package procgroup

import (
	"errors"
	"fmt"
	"os"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/terminal"
)

// The size of a terminal, unless it is given.
const (
	defaultRows = 24
	defaultCols = 80
)

func sizeOf(rows, cols uint16) terminal.Size {
	if rows == 0 {
		rows = defaultRows
	}
	if cols == 0 {
		cols = defaultCols
	}
	return terminal.Size{Rows: rows, Cols: cols}
}

// Terminal gives the command a terminal of its own, with lines and characters. It is an [Option]. With the zero
// Terminal the command has none. The terminal is the standard input and output of the command and, unless [Stop]
// keeps Orphans, the controlling terminal of its session: /dev/tty opens it, a shell has job control in it, and it
// turns Ctrl-C into SIGINT. The environment is not changed: TERM is that of cmd.
//
// Many programs that write in blocks to a pipe write each line at once to a terminal, so that an idle limit sees
// them at work. [Result.Stdout] and [Result.Combined] have the output as it came. The page of the package says in
// which respects a terminal differs from pipes. A [TypingError] says which input does not arrive.
//
// Start returns an error if cmd.Stderr is set and not the same as cmd.Stdout, or if SysProcAttr has Setpgid,
// Foreground, Setctty or Noctty. On Windows, and on other systems without such terminals, the error wraps
// [errors.ErrUnsupported].
type Terminal struct {
	Rows uint16 // lines; 0 means 24 if Cols is not 0
	Cols uint16 // characters of a line; 0 means 80 if Rows is not 0
}

// size returns the size of the terminal, or nil for the zero Terminal.
func (t *Terminal) size() *terminal.Size {
	if *t == (Terminal{}) {
		return nil
	}
	size := sizeOf(t.Rows, t.Cols)
	return &size
}

var errNoTerminal = fmt.Errorf("procgroup: the command has no terminal of its own; see Terminal (%w)", errors.ErrUnsupported)

// Resize changes the size of the terminal of [Terminal]; a 0 means 24 lines, or 80 characters.
// The processes in the foreground get SIGWINCH. After the command has ended, the error is
// [os.ErrProcessDone]. Without a terminal it wraps [errors.ErrUnsupported].
func (p *Process) Resize(rows, cols uint16) error {
	if p.terminal == nil {
		return errNoTerminal
	}
	err := p.out.Resize(sizeOf(rows, cols))
	if errors.Is(err, os.ErrClosed) {
		return os.ErrProcessDone
	}
	return err
}

// A TypingError reports input that the terminal of a command would not have passed on as it is. Neither that input
// nor anything after it was typed.
//
// As long as a terminal keeps lines, until a program such as an editor turns that off, it drops what is beyond 4095
// bytes of a line (on Linux; elsewhere the documented 255 are taken), and takes some bytes for itself: those that
// interrupt or stop processes, stop the output and start it again, end the input, take back a character, a word or
// the line, or quote a byte. Its settings are read right before each write.
//
// For input that is read from cmd.Stdin, the error of Wait wraps the TypingError. Such a reader may be somebody's
// keyboard, so there bytes that the terminal takes for itself are typed, and only a line that is too long is an
// error, or output that is still stopped at the end of the input. The output goes on then.
type TypingError struct {
	// Offset is how many bytes of the input were typed.
	Offset int64
	// Byte is the next byte, which the terminal would not have passed on.
	Byte byte
	// Effect says what the terminal does, such as "it stops the output" or "it keeps only 4095 bytes of a line".
	Effect string
}

// Error says what the terminal would have done, and how many bytes were typed.
func (e *TypingError) Error() string {
	return fmt.Sprintf("procgroup: the terminal does not pass on the byte 0x%02x: %s; %d bytes were typed", e.Byte, e.Effect, e.Offset)
}

func refused(at int64, b byte, maxLine int, does string) error {
	if maxLine > 0 {
		does = fmt.Sprintf("it keeps only %d bytes of a line", maxLine)
	}
	return &TypingError{Offset: at, Byte: b, Effect: does}
}
