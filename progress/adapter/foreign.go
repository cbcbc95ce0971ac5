package adapter

import (
	"errors"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Foreign reports whether err is an error of the supervision and not the tool's own: the tool was stopped, panicked,
// called [runtime.Goexit], or was not called because its limits are not valid. A tool may also return such an error
// itself, for example the error of [progress.Await] or of a command that was stopped; the call is answered in the same
// way. Foreign waits for the methods of err.
func Foreign(err error) bool {
	_, stopped := toolcall.OutcomeOf(err)
	var panicked *timeout.PanicError
	var bad *timeout.ConfigError
	return stopped || errors.As(err, &panicked) || errors.As(err, &bad) || errors.Is(err, timeout.ErrGoexit)
}
