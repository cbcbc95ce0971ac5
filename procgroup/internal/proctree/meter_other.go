//go:build !linux && !windows

package proctree

import (
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/work"
)

// blind is the part of a Tree that looks at its processes, on systems that do not say how much
// each of them works.
type blind struct{}

func (blind) Meter(bool) work.Meter { return func() (work.Usage, bool) { return work.Usage{}, false } }

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
