package heartbeat

import (
	"context"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// Keep calls fn and beats on its behalf until it returns: at once, and then at the
// given interval. Where every is 0 or negative it is what [Interval] returns, at most
// 10 s. It returns fn's error.
//
// It is for calls that work without a chance to beat: a query, a compression, a
// request to a slow service. It vouches for fn blindly, so an idle limit no longer
// finds it stuck; only the total does. To wait for a person, use [Hold].
//
// fn runs on the caller's goroutine with ctx itself, so panics and [runtime.Goexit]
// pass through. The beats stop when fn has returned, in whichever way, or when ctx
// is cancelled.
func Keep(ctx context.Context, every time.Duration, fn func(context.Context) error) error {
	c := pulse.Of(ctx)
	if c == nil || every < 0 {
		return fn(ctx)
	}
	if every == 0 {
		every = Interval(ctx)
	}
	k := keeper{ctx: ctx, cell: c, every: every}
	k.beat()
	defer k.stop()
	return fn(ctx)
}

// A keeper is a timer that sets itself again; no goroutine waits for it.
type keeper struct {
	ctx   context.Context
	cell  *pulse.Cell
	every time.Duration

	mu    sync.Mutex // a beat under way ends before stop returns
	timer pulse.Timer
	done  bool
}

func (k *keeper) beat() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.done || k.ctx.Err() != nil {
		return
	}
	k.cell.Beat()
	if k.timer == nil {
		k.timer = pulse.AfterFunc(k.cell.Clock(), k.every, k.beat)
	} else {
		k.timer.Reset(k.every)
	}
}

func (k *keeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.done = true
	if k.timer != nil {
		k.timer.Stop()
	}
}
