package capture

import (
	"runtime/debug"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Guard calls code, a function of the caller. If code panics, Guard calls failed with a
// [*timeout.PanicError]. If code calls [runtime.Goexit], Guard calls failed with
// [timeout.ErrGoexit], and the goroutine ends. failed must not panic.
func Guard(code func(), failed func(error)) {
	returned := false
	defer func() {
		if v := recover(); v != nil {
			failed(&timeout.PanicError{Value: v, Stack: debug.Stack()})
		} else if !returned {
			failed(timeout.ErrGoexit)
		}
	}()
	code()
	returned = true
}

// A streamError is an error of the caller's reader, or of one of its writers. Its text is made when somebody asks for it:
// the Error method is code of the caller's, too, and must not be called where something waits for it.
type streamError struct {
	operation string
	err       error
}

func (e *streamError) Error() string { return "procgroup: " + e.operation + ": " + e.err.Error() }

func (e *streamError) Unwrap() error { return e.err }
