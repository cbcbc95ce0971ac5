package capture

import (
	"runtime/debug"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// closeTime is the time that a goroutine which nothing blocks any more gets to return.
const closeTime = 50 * time.Millisecond

// Guard calls code, a function of the caller. If code panics, Guard calls failed with a [*timeout.PanicError] and
// returns. If code calls [runtime.Goexit], Guard calls failed with [timeout.ErrGoexit], and the goroutine ends. failed
// must not panic.
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
