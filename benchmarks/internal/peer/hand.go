package peer

import (
	"context"
	"sync"
	"time"
)

// ByHand is the common solution without a library: WithTimeout, a goroutine and a select. It has no idle limit. The
// grace, the cause and the repeated panic are often omitted in such code; they are included because the library has
// them, and they cost almost nothing.
func ByHand(ctx context.Context, l Limits, fn Func) error {
	ctx, cancel := context.WithTimeoutCause(ctx, l.Total, ErrTotal)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- call(ctx, fn, nil) }()
	select {
	case err := <-done:
		return finish(err)
	case <-ctx.Done():
		return afterStop(ctx, done)
	}
}

// TimerReset is ByHand with an idle watchdog: a timer that every beat resets. The second context is
// needed to have both a deadline and a cause that identifies the limit. If a function returns just after a limit,
// select may choose its result; the library returns the error of the limit.
func TimerReset(ctx context.Context, l Limits, fn Func) error {
	ctx, cancel := context.WithTimeoutCause(ctx, l.Total, ErrTotal)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	dog := NewResetDog(l.Idle, func() { stop(ErrIdle) })
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

// A ResetDog is a timer that every beat resets. A beat after Stop restarts it, while in the library such
// a beat does nothing.
type ResetDog struct {
	idle  time.Duration
	timer *time.Timer
}

// NewResetDog returns a ResetDog that calls expired after idle without a beat.
func NewResetDog(idle time.Duration, expired func()) *ResetDog {
	return &ResetDog{idle: idle, timer: time.AfterFunc(idle, expired)}
}

// Beat renews the limit.
func (d *ResetDog) Beat() { d.timer.Reset(d.idle) }

// Stop ends the watch.
func (d *ResetDog) Stop() { d.timer.Stop() }

// A MutexDog is a watchdog that records the time of each beat under a lock. Beats do not reset its timer, whose
// function checks the recorded time and sets the timer again.
type MutexDog struct {
	idle    time.Duration
	expired func()

	mu    sync.Mutex
	last  time.Time
	timer *time.Timer
}

// NewMutexDog returns a MutexDog that calls expired after idle without a beat.
func NewMutexDog(idle time.Duration, expired func()) *MutexDog {
	d := &MutexDog{idle: idle, expired: expired, last: time.Now()}
	d.mu.Lock() // the timer may fire before d.timer is set
	d.timer = time.AfterFunc(idle, d.look)
	d.mu.Unlock()
	return d
}

// Beat renews the limit.
func (d *MutexDog) Beat() {
	d.mu.Lock()
	d.last = time.Now()
	d.mu.Unlock()
}

// Stop ends the watch.
func (d *MutexDog) Stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timer.Stop()
}

func (d *MutexDog) look() {
	d.mu.Lock()
	left := d.idle - time.Since(d.last)
	if left > 0 {
		d.timer.Reset(left)
	}
	d.mu.Unlock()
	if left <= 0 {
		d.expired()
	}
}
