package capture

import (
	"runtime/debug"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Guard calls code of the caller's and passes on how it ended where it neither returned
// nor failed: failed is called with a [*timeout.PanicError], or with [timeout.ErrGoexit],
// in which case the goroutine ends after that. failed must not panic.
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
