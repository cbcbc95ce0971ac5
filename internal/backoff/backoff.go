// Package backoff computes the waits between attempts.
package backoff

import (
	"context"
	"math"
	"time"
)

// Waits computes the waits between attempts: First, then each Factor times as long as the one before, up to the longer
// of Max and First. A Factor below 1 means 1. No wait is shorter than 1 ms. A Waits is not safe for concurrent use.
type Waits struct {
	First, Max time.Duration
	Factor     float64

	next time.Duration
}

// Next returns the next wait.
func (w *Waits) Next() time.Duration {
	now, most := max(w.next, w.First, time.Millisecond), max(w.Max, w.First, time.Millisecond)
	if longer := math.Round(float64(now) * w.Factor); longer < float64(most) {
		w.next = time.Duration(longer)
	} else {
		w.next = most
	}
	return now
}

// Reset makes the next wait the first one again.
func (w *Waits) Reset() { w.next = 0 }

// Sleep waits for d and returns true, or returns false when ctx ends before that.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
