//go:build !linux

package proctree

import (
	"os"
	"runtime"
	"time"
)

// A Foreign cannot be looked at here.
type Foreign struct{}

// Watch returns an error.
func Watch(*os.Process) (*Foreign, error) {
	return nil, unsupported("on " + runtime.GOOS + " there is no way to look at a process that was started elsewhere")
}

// Meter knows nothing.
func (*Foreign) Meter(bool) Meter { return func() (Usage, bool) { return Usage{}, false } }

// Snapshot knows nothing.
func (*Foreign) Snapshot(time.Time) ([]Process, bool) { return nil, false }

// StackWriters knows none.
func (*Foreign) StackWriters(time.Time, func(int) bool) func(time.Time) { return nil }

// Close does nothing.
func (*Foreign) Close() {}
