package timeout

import (
	"time"

	"github.com/benbjohnson/clock"
)

// A Clock tells the time to an execution; see [WithClock]. clock.Clock and
// *clock.Mock of github.com/benbjohnson/clock satisfy it. Only durations between
// its instants matter, so it may show any time.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f in its own goroutine once d has passed. f may call Now.
	AfterFunc(d time.Duration, f func()) *clock.Timer
}
