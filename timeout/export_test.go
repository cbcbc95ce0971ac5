package timeout

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// DelayTimer makes the timer of ctx's execution fire late by d, and nothing know of it, as
// it is when the process is stopped. A bubble of testing/synctest cannot do that.
func DelayTimer(ctx context.Context, d time.Duration) {
	e := (*execution)(pulse.Of(ctx).Engine().(*engine))
	e.cell.Lock()
	defer e.cell.Unlock()
	e.timer.Reset(e.armed - e.cell.Now() + d)
}
