package toolcall

import (
	"errors"
	"strings"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Text is what a result says about err to the model: its message and, unless that is empty or
// white space, the partial output.
func Text(err error, partial string) string {
	if strings.TrimSpace(partial) == "" {
		return err.Error()
	}
	return err.Error() + "\n\nPartial output:\n" + partial
}

// Foreign reports whether err is not the tool's own: the tool was stopped, has panicked or
// called runtime.Goexit, or was not called since its limits make no sense. A tool may return
// such an error too, as that of [progress.Await], and it is answered alike.
//
// [progress.Await]: https://pkg.go.dev/github.com/tooldeadline/tooldeadline/progress#Await
func Foreign(err error) bool {
	var stopped *timeout.Error
	var panicked *timeout.PanicError
	var bad *timeout.ConfigError
	return errors.As(err, &stopped) || errors.As(err, &panicked) || errors.As(err, &bad) || errors.Is(err, timeout.ErrGoexit)
}
