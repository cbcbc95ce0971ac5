package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/backoff"
	"github.com/tooldeadline/tooldeadline/internal/human"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A holder holds one lease. Its lock is not held during calls of Renew and Release.
type holder struct {
	Lease
	clock  pulse.Clock
	margin time.Duration              // the time before the end of the lease at which the work is stopped
	parent context.Context            // parent of the writes' contexts: Run's, without its end and heartbeat
	outer  *holder                    // the holder of the lease within which this one is held, or nil
	cell   atomic.Pointer[pulse.Cell] // the heartbeat of the work; nil before it begins
	lose   context.CancelCauseFunc    // cancels the work's context

	mu         sync.Mutex
	over       bool          // whether nothing may be sent any more
	concluding bool          // whether the work has ended, after which no renewal begins
	sent       time.Time     // when the newest successful renewal was sent, or when the lease began
	failed     error         // the error of the last renewal since sent, or nil
	loss       *lossError    // nil if the lease is not lost
	writing    chan struct{} // closed when the write in progress has returned; nil if there is none
	cancel     func()        // cancels the write in progress, or nil
	quit       func()        // ends the release; nil while the work runs
	waits      backoff.Waits
	renewal    pulse.Timer
	end        pulse.Timer // calls expire; set at the first renewal, before which most work is done
}

type key struct{}

// A held is the value under key in the context of the work, where work is true, and of the writes.
type held struct {
	*holder
	work bool
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
	if now := h.now(); h.Since.IsZero() || h.Since.After(now) { // the zero Time, or a time in the future
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

// left returns the time for which the holder may still rely on the lease. It counts from when the newest successful
// renewal was sent, because the engine may have received it at once and answered late. Once the work has ended, no
// grace is subtracted, but still a sixth of Duration, for clocks of different speed and for a write under way. The
// lock is held.
func (h *holder) left() time.Duration {
	margin := h.margin
	if h.concluding {
		margin = min(margin, h.Duration/6)
	}
	return h.Duration - margin - h.age()
}

// age returns the time since the newest successful renewal was sent, by the monotonic or the wall clock, whichever
// shows more: on most systems the monotonic clock stands still while the machine is suspended. If the wall clock is
// set forward, the lease is given up too early, which is safe. The lock is held.
func (h *holder) age() time.Duration {
	now := h.now()
	return max(now.Sub(h.sent), now.Round(0).Sub(h.sent.Round(0)))
}

// begin sets the timer for the first renewal. It returns false if the lease has ended already.
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

// lost ends the lease if its time is over, and reports whether nothing may be sent any more. It reads the clock,
// because the timers may be late, as after a pause of the process. The lock is held.
func (h *holder) lost() bool {
	if !h.over && h.Duration > 0 && h.left() <= 0 {
		h.lostFor(&lossError{h.age(), h.failed})
	}
	return h.over
}

// lostFor ends the lease with why as the cause for the work. The lock is held.
func (h *holder) lostFor(why *lossError) {
	h.loss = why
	h.finish()
	h.lose(why)
}

// finish prevents all further writes, and cancels a write in progress. The lock is held.
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

// expire ends the lease if its time is over, and otherwise sets its timer again. The timer end calls it.
func (h *holder) expire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.lost() { // the lease was renewed meanwhile, or the work has ended and needs no grace
		h.end.Reset(h.left())
	}
}

// check returns ErrLost if this lease, or one within which it is held, is lost. If work is true, the caller is the
// work and not a write, and check also returns ErrLost once the work has ended, because the engine may have released
// the lease even before its answer arrives. That applies to the outer leases in any case.
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

// attempt returns the time limit of one write, after which a request without an answer is repeated.
func (h *holder) attempt() time.Duration { return min(max(h.Every, h.Duration/6), 5*time.Second) }

// open begins a write, and returns its context, which ends after attempt or with the lease. ok is false if nothing
// may be sent. The lock is held, and no other write is in progress.
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

// close ends the write that open began. The lock is held.
func (h *holder) close() {
	h.cancel()
	close(h.writing)
	h.cancel, h.writing = nil, nil
}

// ask calls write, which is Renew or Release, and then answered with its error. A panic is an error of type
// *timeout.PanicError. lost reports whether the error is ErrLost; the methods of the error are called here, where
// they may block.
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
		// without the detail of an interlude, such as a wait for a person, which is of no use to the next attempt
		if d := c.Lasting(); d != nil {
			s.Detail = d
		}
	}
	failed := write(ctx, s)
	lost = errors.Is(failed, ErrLost)
	err = failed
}

// renew renews the lease once, and sets the timer for the next renewal, or for another try. It runs on the timer's
// goroutine. Calls do not overlap, because only renew sets the timer again.
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

// A lossError is the cause with which the work is stopped when its lease is lost.
type lossError struct {
	unrenewed time.Duration // the time without a successful renewal; 0 if the engine has refused a renewal
	err       error         // the error of the last renewal, or nil
}

func (e *lossError) Error() string {
	if e.unrenewed == 0 {
		return texts.Of(e.err)
	}
	text := fmt.Sprintf("%v, since no renewal has succeeded for %v", ErrLost, human.Duration(e.unrenewed))
	if e.err != nil {
		text += ": " + texts.Of(e.err)
	}
	return text
}

func (e *lossError) Unwrap() []error {
	if e.err == nil {
		return []error{ErrLost}
	}
	return []error{ErrLost, e.err}
}
