package heartbeat

import (
	"context"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// Keep calls fn, beats until fn returns, and returns fn's error. The first beat comes before the call, and the others
// at the given interval.
//
// Keep is for calls that cannot beat themselves: a query, a compression, a request to a slow service. It does not
// know whether fn makes progress, so an idle limit does not find a stuck fn; only a total does. To wait for a person,
// use [Hold].
//
// Keep runs fn on the caller's goroutine with ctx itself, so panics and [runtime.Goexit] pass through. The beats stop
// when fn ends, however it ends, or when ctx is cancelled. Outside an execution Keep just calls fn.
//
// An interval of 0 means the result of [Interval]; a negative interval means no beats. The shortest interval is 1 ms.
func Keep(ctx context.Context, every time.Duration, fn func(context.Context) error) error {
	c := pulse.Of(ctx)
	if c == nil || every < 0 {
		return fn(ctx)
	}
	if every == 0 {
		every = Interval(ctx)
	}
	k := keeper{ctx: ctx, cell: c, every: max(every, time.Millisecond)}
	k.beat()
	defer k.stop()
	return fn(ctx)
}

// A keeper sends the beats of Keep from a timer that resets itself, so that no goroutine has to wait.
type keeper struct {
	ctx   context.Context
	cell  *pulse.Cell
	every time.Duration

	mu    sync.Mutex // guards the fields below; held during a beat, for which stop waits
	timer pulse.Timer
	done  bool
}

func (k *keeper) beat() {
	ended := over(k.ctx) // without the lock, because the methods of ctx may be foreign code
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.done || ended {
		return
	}
	k.cell.Beat()
	if k.timer == nil {
		k.timer = pulse.AfterFunc(k.cell.Clock(), k.every, k.beat)
	} else {
		k.timer.Reset(k.every)
	}
}

// over reports whether ctx has ended. A ctx whose Err method panics counts as ended, because a panic on the timer's
// goroutine would end the process.
func over(ctx context.Context) (ended bool) {
	defer func() { ended = recover() != nil || ended }()
	return ctx.Err() != nil
}

func (k *keeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.done = true
	if k.timer != nil {
		k.timer.Stop()
	}
}
