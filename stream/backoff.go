package stream

import (
	"cmp"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/backoff"
)

// minDelay is the shortest delay, which prevents a client from polling a server in a tight loop.
const minDelay = 100 * time.Millisecond

// A Backoff sets the delays before the attempts to reopen a stream. The zero Backoff waits 500 ms at first, then a
// fifth longer each time, up to 10 s. No delay is shorter than 100 ms, except one that the GiveUp of [Notifications]
// cuts.
type Backoff struct {
	// First is the delay before the first attempt, unless the server has requested another delay with its retry field. 0
	// means 500 ms, and any other value below 100 ms means 100 ms.
	First time.Duration
	// Max is the longest delay. 0 means 10 s. A Max below First means First.
	Max time.Duration
	// Factor is the quotient of each delay and the one before. 0 means 1.2. A value below 1 means 1: all delays are
	// equal.
	Factor float64
}

// waits returns the delays of one stream.
func (b Backoff) waits() backoff.Waits {
	w := backoff.Waits{First: max(cmp.Or(b.First, 500*time.Millisecond), minDelay), Factor: cmp.Or(b.Factor, 1.2)}
	w.Max = max(cmp.Or(b.Max, 10*time.Second), w.First)
	if !(w.Factor >= 1) { // NaN, too
		w.Factor = 1
	}
	return w
}
