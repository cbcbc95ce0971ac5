package peer

import (
	"context"
	"sync/atomic"
	"time"
)

// PollInterval is the interval at which a PollDog checks the time of the last beat.
const PollInterval = time.Second

// Polling works like ytils.dev/heartbeat: a beat allocates and stores a small record, and a goroutine per run checks
// the record every second. It is not a copy: the original could not be fetched, and Polling was written from that
// description. The total, the grace and the rest of the contract are added as in TimerReset. The idle limit is up to a
// second late.
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

// A PollDog checks every PollInterval whether there was a beat.
type PollDog struct {
	last atomic.Pointer[record]
	quit chan struct{}
}

type record struct{ at time.Time }

// NewPollDog returns a PollDog that calls expired once it finds no beat for idle.
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
