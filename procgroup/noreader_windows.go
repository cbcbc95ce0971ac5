package procgroup

import (
	"errors"

	"golang.org/x/sys/windows"
)

// noReader reports whether err is that of writing to a pipe that nobody reads any more.
func noReader(err error) bool {
	return errors.Is(err, windows.ERROR_BROKEN_PIPE) || errors.Is(err, windows.ERROR_NO_DATA)
}
