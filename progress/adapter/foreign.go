package adapter

import (
	"errors"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Foreign reports whether err is not the tool's own error: the tool was stopped, panicked, called
// [runtime.Goexit], or was not called because its limits are not valid. A tool may also return such an
// error itself, for example that of [progress.Await]; it is answered in the same way.
func Foreign(err error) bool {
	var stopped *timeout.Error
	var panicked *timeout.PanicError
	var bad *timeout.ConfigError
	return errors.As(err, &stopped) || errors.As(err, &panicked) || errors.As(err, &bad) || errors.Is(err, timeout.ErrGoexit)
}
