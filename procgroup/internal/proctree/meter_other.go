//go:build !linux && !windows

package proctree

import (
	"runtime"
	"time"
)

// CanMeter returns why the work of a tree cannot be told here, if it cannot.
func CanMeter(bool) error {
	return unsupported("on " + runtime.GOOS + " there is no way to tell how much a tree of processes works")
}

// blind is the part of a Tree that looks at its processes, on systems that do not say how much
// each of them works.
type blind struct{}

func (blind) Meter(bool) Meter { return func() (Usage, bool) { return Usage{}, false } }

// Total knows nothing here.
func (blind) Total() Total { return Total{} }

// Unanswered is 0, because nothing is asked.
func (blind) Unanswered() int { return 0 }

// Snapshot knows nothing here.
func (blind) Snapshot(time.Time) ([]Process, bool) { return nil, false }

// Others knows none here.
func (blind) Others(time.Time) ([]Process, bool) { return nil, false }

// StackWriters knows none here.
func (blind) StackWriters(time.Time, func(int) bool) func(time.Time) { return nil }
