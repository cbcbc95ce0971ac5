package lease

import (
	"context"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/backoff"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// releaseTime is the time for which Run tries to release a lease that has no end, or after ctx has ended.
const releaseTime = 5 * time.Second

// conclude releases the lease with the outcome of the work, unless it is lost, and returns the error that Run returns.
// If Release is nil, it sends the newest detail after a failure, and ignores the error of that. work is the context of
// the work: conclude gives up releaseTime after its end.
func (h *holder) conclude(work context.Context, outcome error) error {
	release := h.Release
	if release == nil && outcome != nil {
		release = h.Renew // to send the newest detail, which may have come since the last renewal
	}
	h.mu.Lock()
	h.concluding = true
	waits := h.waits // the delays of renewals, shortened below, because a release has less time
	if h.lost() {
		loss := h.loss
		h.mu.Unlock()
		if stopped, ok := outcome.(*timeout.Error); ok && stopped.Cause == error(loss) { // not an outer lease's loss
			return outcome
		}
		return &unreleasedError{outcome, loss}
	}
	h.renewal.Stop()
	if h.cancel != nil {
		h.cancel() // a renewal in progress
	}
	bounded, end := context.WithCancelCause(h.parent)
	defer end(nil)
	h.quit = func() { end(ErrLost) }
	giveUp := func() { end(ErrUnconfirmed) }
	switch {
	case h.Duration == 0:
		defer time.AfterFunc(releaseTime, giveUp).Stop() // not on h.clock, which may stand still
	case h.end == nil:
		h.end = pulse.AfterFunc(h.clock, h.left(), h.expire)
	}
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.finish()
	}()
	if release == nil {
		return nil
	}

	defer context.AfterFunc(work, func() {
		if backoff.Sleep(bounded, releaseTime) {
			giveUp()
		}
	})()
	waits.First, waits.Max = min(waits.First, releaseTime/10), min(waits.Max, releaseTime/2)
	waits.Reset()
	var last error
	for {
		err, lost := h.write(bounded, release, outcome)
		why := err
		switch {
		case err == nil, h.Release == nil:
			return outcome
		case lost && err != ErrLost: // the error of Release wraps ErrLost
		case lost:
			why = join(why, last)
		default:
			if bounded.Err() == nil || last == nil {
				last = err
			}
			if backoff.Sleep(bounded, waits.Next()) {
				continue
			}
			why = join(context.Cause(bounded), last)
		}
		return &unreleasedError{outcome, why}
	}
}

// join returns why together with last, the last error of Release, if that is another error.
func join(why, last error) error {
	if last == nil || last == why {
		return why
	}
	return &lastAnswerError{why, last}
}

// write makes one attempt to release the lease, after a renewal in progress has returned. It returns the error of
// release or, if ctx ends first, the cause of ctx; release may then go on. lost reports whether the error is ErrLost,
// or matches it; write also returns ErrLost if nothing may be sent any more.
func (h *holder) write(ctx context.Context, release func(context.Context, Checkpoint) error, outcome error) (err error, lost bool) {
	h.mu.Lock()
	for h.writing != nil {
		writing := h.writing
		h.mu.Unlock()
		select { // if ctx has ended too, it ends the attempt below
		case <-writing:
		case <-ctx.Done():
			return context.Cause(ctx), false
		}
		h.mu.Lock()
	}
	attempt, ok := h.open(ctx)
	h.mu.Unlock()
	if !ok {
		return ErrLost, true
	}
	type answer struct {
		err  error
		lost bool
	}
	answers := make(chan answer, 1)
	go h.ask(attempt, release, outcome, func(err error, lost bool) {
		h.mu.Lock()
		h.close()
		h.mu.Unlock()
		answers <- answer{err, lost}
	})
	select { // an answer that comes as ctx ends may be missed: the release is then unconfirmed
	case a := <-answers:
		return a.err, a.lost
	case <-ctx.Done():
		return context.Cause(ctx), false
	}
}

// An unreleasedError holds the outcome of work whose lease may not have been released, and the reason.
type unreleasedError struct{ outcome, why error }

func (e *unreleasedError) Error() string {
	if e.outcome == nil {
		return "lease: work is done, and not known to be released: " + text(e.why)
	}
	return text(e.outcome) + " (lease: not known to be released: " + text(e.why) + ")"
}

// text returns the text of an error, whose methods may be the caller's code, within the bounds of package texts.
func text(err error) string {
	switch err.(type) {
	case *lastAnswerError, *lossError, *timeout.Error, *timeout.PanicError: // their texts are bounded
		return fmt.Sprint(err)
	}
	return texts.Part(err)
}

func (e *unreleasedError) Unwrap() []error {
	if e.outcome == nil { // a list of errors must not contain nil
		return []error{e.why}
	}
	return []error{e.outcome, e.why}
}

// A lastAnswerError holds the reason why a lease may not have been released, and the last error of Release. Its Error
// method alone calls the Error method of the latter.
type lastAnswerError struct{ why, last error }

func (e *lastAnswerError) Error() string { return e.why.Error() + ": " + texts.Of(e.last) }

func (e *lastAnswerError) Unwrap() []error { return []error{e.why, e.last} }
