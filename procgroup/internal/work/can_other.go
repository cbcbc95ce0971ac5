//go:build !linux && !windows

package work

import (
	"errors"
	"fmt"
	"runtime"
)

// CanMeter returns an error that wraps errors.ErrUnsupported: this package cannot measure a tree on these systems.
func CanMeter(bool) error {
	return fmt.Errorf("on %s there is no way to tell how much a tree of processes works (%w)", runtime.GOOS, errors.ErrUnsupported)
}
