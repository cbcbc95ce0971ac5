//go:build !linux && !windows

package work

import (
	"errors"
	"fmt"
	"runtime"
)

// CanMeter returns an error: on these systems the work of a tree cannot be measured.
func CanMeter(bool) error {
	return fmt.Errorf("on %s there is no way to tell how much a tree of processes works (%w)", runtime.GOOS, errors.ErrUnsupported)
}
