//go:build !linux && !windows

package work

import (
	"errors"
	"fmt"
	"runtime"
)

// CanMeter returns why the work of a tree cannot be told here.
func CanMeter(bool) error {
	return fmt.Errorf("on %s there is no way to tell how much a tree of processes works (%w)", runtime.GOOS, errors.ErrUnsupported)
}
