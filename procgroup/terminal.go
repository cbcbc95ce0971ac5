package procgroup

import (
	"cmp"
	"fmt"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/terminal"
)

// sizeOf returns a size with the defaults in place of zeros.
func sizeOf(rows, cols uint16) terminal.Size {
	return terminal.Size{Rows: cmp.Or(rows, 24), Cols: cmp.Or(cols, 80)}
}

// Terminal gives the command its own terminal, of the size Rows and Cols. It is an [Option]. With the zero Terminal the
// command has no terminal. The terminal is the standard input and output of the command and, unless [Stop] keeps
// Orphans, the controlling terminal of its session: /dev/tty opens it, a shell has job control in it, and it turns
// Ctrl-C into SIGINT. The environment is not changed: set TERM in cmd.Env.
//
// Many programs write in blocks to a pipe, but each line at once to a terminal, so that their output is a heartbeat
// earlier. [Result.Stdout] and [Result.Combined] contain the output with all control sequences. The package
// documentation says in which respects a terminal differs from pipes. A [TypingError] reports input that does not
// arrive.
//
// Start returns an error if cmd.Stderr is set and not the same as cmd.Stdout, or if SysProcAttr has Setpgid,
// Foreground, Setctty or Noctty. On Windows, and on other systems without such terminals, Start returns an error that
// wraps [errors.ErrUnsupported].
type Terminal struct {
	Rows uint16 // number of lines; 0 means 24 if Cols is not 0
	Cols uint16 // characters per line; 0 means 80 if Rows is not 0
}

// size returns the size of the terminal, or nil for the zero Terminal.
func (t *Terminal) size() *terminal.Size {
	if *t == (Terminal{}) {
		return nil
	}
	size := sizeOf(t.Rows, t.Cols)
	return &size
}

// A TypingError reports input that the terminal of a command would not pass on unchanged. Neither that input nor any
// input after it was typed.
//
// Unless a program such as an editor has turned the line mode of the terminal off, the terminal drops the part of a
// line beyond 4095 bytes (on Linux; elsewhere the limit is taken to be the documented 255), and does not pass on some
// bytes but acts on them: they interrupt or stop processes, stop or restart the output, end the input, erase a
// character, a word or the line, or quote a byte. The settings of the terminal are read right before each write.
//
// For input that is read from cmd.Stdin, the error of Wait wraps the TypingError. Because that reader may be a
// keyboard, bytes on which the terminal acts are typed. Then there is a TypingError only for a line that is too long,
// and for output that is still stopped at the end of the input; all input was then typed, and the output is restarted.
type TypingError struct {
	// Offset is the number of bytes of the input that were typed.
	Offset int64
	// Byte is the next byte, which the terminal would not have passed on. If the output was still stopped at the end of
	// the input, Byte is the byte that had stopped it.
	Byte byte
	// Effect says what the terminal does, such as "it stops the output" or "it keeps only 4095 bytes of a line".
	Effect string
}

// Error describes the byte and its effect, and says how many bytes were typed.
func (e *TypingError) Error() string {
	return fmt.Sprintf("procgroup: the terminal does not pass on the byte 0x%02x: %s; %d bytes were typed", e.Byte, e.Effect, e.Offset)
}

// refused makes the TypingError for capture.Config.Refused, which describes the parameters.
func refused(at int64, b byte, maxLine int, does string) error {
	if maxLine > 0 {
		does = fmt.Sprintf("it keeps only %d bytes of a line", maxLine)
	}
	return &TypingError{Offset: at, Byte: b, Effect: does}
}
