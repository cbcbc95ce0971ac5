package lease

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/backoff"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A holder holds one lease. Its lock is never held while the engine is asked.
type holder struct {
	Lease
	clock  pulse.Clock
	margin time.Duration              // how long before the end of the lease the work is told
	parent context.Context            // of the writes: with the values of Run's, and neither its end nor its heartbeat
	outer  *holder                    // of the lease within which this one is held, or nil
	cell   atomic.Pointer[pulse.Cell] // the heartbeat of the work; nil before it begins
	lose   context.CancelCauseFunc    // of the work's context

	mu         sync.Mutex
	over       bool          // nothing may be sent any more
	concluding bool          // the work has ended, and no renewal begins any more
	sent       time.Time     // the newest successful renewal, or the beginning
	failed     error         // of the renewal after it; nil if there is none
	loss       *lossError    // nil if the lease is not lost
	writing    chan struct{} // closed when the engine has answered; nil while it is not asked
	cancel     func()        // of what is being written
	quit       func()        // of conclude; nil while the work runs
	waits      backoff.Waits
	renewal    pulse.Timer
	end        pulse.Timer // of the lease, from the first renewal on; most work is done before
}

func newHolder(ctx context.Context, l Lease, opts []timeout.Option) *holder {
	h := &holder{Lease: l, clock: pulse.Of(ctx).Clock()}
	if outer, ok := ctx.Value(key{}).(held); ok {
		h.outer = outer.holder
	}
	limits, _ := timeout.ProcessDefault()
	for _, o := range opts {
		switch o := o.(type) {
		case timeout.Config:
			limits = o
		case interface{ Clock() pulse.Clock }:
			if c := o.Clock(); c != nil {
				h.clock = c
			}
		}
	}
	h.Duration = max(h.Duration, 0)
	if h.Every <= 0 {
		h.Every = cmp.Or(h.Duration/6, heartbeat.DefaultInterval)
	}
	if h.Duration > 0 {
		h.Every = min(h.Every, h.Duration/3)
	}
	h.Every = max(h.Every, time.Millisecond)
	if now := h.now(); h.Since.IsZero() || h.Since.After(now) { // on another clock
		h.sent = now
	} else {
		h.sent = h.Since
	}
	grace := min(max(cmp.Or(limits.Grace, timeout.DefaultGrace), 0), h.Duration/2)
	h.margin = min(max(h.Duration/6, grace+h.Duration/20), h.Duration/2)
	h.waits = backoff.Waits{First: max(h.Every/20, time.Millisecond), Max: h.Every / 4, Factor: 2}
	return h
}

func (h *holder) now() time.Time { return pulse.Now(h.clock) }

// left returns how long it is until the lease is no longer relied upon. That counts from when a renewal was sent, since the
// engine may have received it at once and have answered late. Work that has ended needs no grace any more; a sixth remains
// for clocks that do not run at the same speed, and for a write that is on its way. On most systems the monotonic clock stands
// still while the machine is suspended, and the other one does not. Where somebody has set that one forward, the lease is
// lost too soon, which is the lesser evil. The lock is held.
func (h *holder) left() time.Duration {
	margin := h.margin
	if h.concluding {
		margin = min(margin, h.Duration/6)
	}
	return h.Duration - margin - h.age()
}

// age returns the time since the newest successful renewal was sent. The lock is held.
func (h *holder) age() time.Duration {
	now := h.now()
	return max(now.Sub(h.sent), now.Round(0).Sub(h.sent.Round(0)))
}

// begin begins to hold the lease. It reports false if the lease has ended already.
func (h *holder) begin(work context.Context, lose context.CancelCauseFunc) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.parent, h.lose = context.WithValue(pulse.Mute(context.WithoutCancel(work)), key{}, held{h, false}), lose
	if h.lost() {
		return false
	}
	h.renewal = pulse.AfterFunc(h.clock, h.sent.Add(h.Every).Sub(h.now()), h.renew)
	return true
}

// lost ends a lease that has run out, and reports whether nothing may be sent any more. The timers may be late, as after a
// pause of the process, so it asks the clock. The lock is held.
func (h *holder) lost() bool {
	if !h.over && h.Duration > 0 && h.left() <= 0 {
		h.lostFor(&lossError{h.age(), h.failed})
	}
	return h.over
}

// lostFor ends the lease for a reason. The lock is held.
func (h *holder) lostFor(why *lossError) {
	h.loss = why
	h.finish()
	h.lose(why)
}

// finish makes the holder send nothing any more. The lock is held.
func (h *holder) finish() {
	h.over = true
	for _, t := range []pulse.Timer{h.renewal, h.end} {
		if t != nil {
			t.Stop()
		}
	}
	for _, cancel := range []func(){h.cancel, h.quit} {
		if cancel != nil {
			cancel()
		}
	}
}

// expire ends the lease if it has run out. It runs on the goroutine of the timer of the loss.
func (h *holder) expire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.lost() { // the lease was renewed meanwhile, or the work needs no grace any more
		h.end.Reset(h.left())
	}
}

// check returns ErrLost if the lease is lost, one within which it is held, or, to work, if the work has ended: it may have been
// released, though the answer of the engine is not here yet.
func (h *holder) check(work bool) error {
	for ; h != nil; h, work = h.outer, true {
		h.mu.Lock()
		lost := h.lost() || work && h.concluding
		h.mu.Unlock()
		if lost {
			return ErrLost
		}
	}
	return nil
}

// attempt bounds one write, so that a request without an answer is repeated while the lease lasts.
func (h *holder) attempt() time.Duration { return min(max(h.Every, h.Duration/6), 5*time.Second) }

// open begins a write, and returns its context. ok is false if nothing may be sent. The lock is held, and nothing else
// is being written.
func (h *holder) open(parent context.Context) (ctx context.Context, ok bool) {
	if h.lost() {
		return nil, false
	}
	wait := h.attempt()
	if h.Duration > 0 {
		wait = min(wait, h.left())
	}
	ctx, h.cancel = context.WithTimeout(parent, wait)
	h.writing = make(chan struct{})
	return ctx, true
}

// close ends a write. The lock is held.
func (h *holder) close() {
	h.cancel()
	close(h.writing)
	h.cancel, h.writing = nil, nil
}

// ask calls Renew or Release, and then answered with its error. lost says whether that is ErrLost, since only here may its
// methods be called.
func (h *holder) ask(ctx context.Context, write func(context.Context, Checkpoint) error, outcome error, answered func(err error, lost bool)) {
	err, lost := timeout.ErrGoexit, false
	defer func() {
		if v := recover(); v != nil {
			err, lost = &timeout.PanicError{Value: v, Stack: debug.Stack()}, false
		}
		answered(err, lost)
	}()
	s := Checkpoint{Token: h.Token, Detail: h.Detail, Err: outcome}
	if c := h.cell.Load(); c != nil {
		// Not that of an interlude, such as a wait for a person: the next attempt could do nothing with it.
		if d := c.Lasting(); d != nil {
			s.Detail = d
		}
	}
	failed := write(ctx, s)
	lost = errors.Is(failed, ErrLost)
	err = failed
}

// renew renews the lease once, and sets the timer for the next renewal, or for another try. It runs on the timer's
// goroutine. Its calls do not overlap, because nothing else sets the timer.
func (h *holder) renew() {
	h.mu.Lock()
	if h.over || h.concluding {
		h.mu.Unlock()
		return
	}
	ctx, ok := h.open(h.parent)
	if ok && h.end == nil && h.Duration > 0 {
		h.end = pulse.AfterFunc(h.clock, h.left(), h.expire)
	}
	h.mu.Unlock()
	if !ok {
		return
	}
	sent := h.now()
	h.ask(ctx, h.Renew, nil, func(err error, lost bool) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.close()
		switch {
		case h.over:
		case lost:
			h.lostFor(&lossError{err: err})
		case err != nil:
			if !h.concluding {
				h.failed = err
				h.renewal.Reset(h.waits.Next())
			}
		default:
			h.sent, h.failed = sent, nil
			h.waits.Reset()
			if h.end != nil {
				h.end.Reset(h.left())
			}
			if !h.concluding {
				h.renewal.Reset(sent.Add(h.Every).Sub(h.now()))
			}
		}
	})
}
