//go:build !linux

package proctree

import (
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/work"
)

// blind has the methods of a Tree that measure or list its processes, for systems where this package cannot.
type blind struct{}

func (blind) Meter(bool) work.Meter { return func() (work.Usage, bool) { return work.Usage{}, false } }

// Total returns the zero Total, because nothing is counted.
func (blind) Total() Total { return Total{} }

// Unanswered returns 0, because these systems need no reads that can block.
func (blind) Unanswered() int { return 0 }

// Snapshot returns no processes.
func (blind) Snapshot(time.Time) ([]Process, bool) { return nil, false }

// Others returns no processes.
func (blind) Others(time.Time) ([]Process, bool) { return nil, false }

// StackWriters returns nil, because it finds no process.
func (blind) StackWriters(time.Time, func(int) bool) func(time.Time) { return nil }
