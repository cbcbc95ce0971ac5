package peer

import (
	"context"
	"sync/atomic"
	"time"
)

// PollInterval is how often a PollDog looks.
const PollInterval = time.Second

// Polling supervises in the way of ytils.dev/heartbeat: a beat stores a small record
// that it allocates, and a goroutine for each run looks at it every second. It is
// written anew from that description, because the original could not be fetched, and
// is no copy of it. The total, the grace and the rest of the contract are added as in
// TimerReset. What cannot be added is punctuality: the limit is up to a second late.
func Polling(ctx context.Context, l Limits, fn Func) error {
	ctx, cancel := context.WithTimeoutCause(ctx, l.Total, ErrTotal)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	dog := NewPollDog(l.Idle, func() { stop(ErrIdle) })
	defer dog.Stop()
	done := make(chan error, 1)
	go func() { done <- call(ctx, fn, dog) }()
	select {
	case err := <-done:
		return finish(err)
	case <-ctx.Done():
		return afterStop(ctx, done)
	}
}

// A PollDog looks every PollInterval whether a beat has come.
type PollDog struct {
	last atomic.Pointer[record]
	quit chan struct{}
}

type record struct{ at time.Time }

// NewPollDog calls expired once it sees that no beat has come for idle.
func NewPollDog(idle time.Duration, expired func()) *PollDog {
	d := &PollDog{quit: make(chan struct{})}
	d.Beat()
	go d.watch(idle, expired)
	return d
}

// Beat renews the limit.
func (d *PollDog) Beat() { d.last.Store(&record{time.Now()}) }

// Stop ends the watch.
func (d *PollDog) Stop() { close(d.quit) }

func (d *PollDog) watch(idle time.Duration, expired func()) {
	tick := time.NewTicker(PollInterval)
	defer tick.Stop()
	for {
		select {
		case <-d.quit:
			return
		case <-tick.C:
			if time.Since(d.last.Load().at) >= idle {
				expired()
				return
			}
		}
	}
}
