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

// Total returns the zero Total, because nothing is counted.
func (blind) Total() Total { return Total{} }

// Unanswered returns 0, because nothing is asked.
func (blind) Unanswered() int { return 0 }

// Snapshot lists no process.
func (blind) Snapshot(time.Time) ([]Process, bool) { return nil, false }

// Others lists no process.
func (blind) Others(time.Time) ([]Process, bool) { return nil, false }

// StackWriters returns nil, because no process is known.
func (blind) StackWriters(time.Time, func(int) bool) func(time.Time) { return nil }
