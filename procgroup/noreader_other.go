//go:build !windows

package procgroup

import (
	"errors"
	"syscall"
)

// noReader reports whether err is that of writing to a pipe that nobody reads any more.
func noReader(err error) bool { return errors.Is(err, syscall.EPIPE) }
