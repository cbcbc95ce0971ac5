package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/backoff"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// releaseTime is how long a lease is tried to be released that has no end, or whose worker stops.
const releaseTime = 5 * time.Second

// conclude releases the lease with the outcome of the work, and returns what Run returns.
func (h *holder) conclude(work context.Context, outcome error) error {
	release := h.Release
	if release == nil && outcome != nil {
		release = h.Renew // the newest detail may have come since the last renewal
	}
	h.mu.Lock()
	h.concluding = true
	if h.lost() {
		h.mu.Unlock()
		return unreleased(outcome, ErrLost)
	}
	h.renewal.Stop()
	if h.cancel != nil {
		h.cancel() // the renewal that is on its way
	}
	bounded, cancel := context.WithCancel(h.parent)
	defer cancel()
	h.quit = cancel
	switch {
	case h.Duration == 0:
		defer time.AfterFunc(releaseTime, cancel).Stop() // not on h.clock, which may stand while tries follow each other
	case h.loss == nil:
		h.loss = pulse.AfterFunc(h.clock, h.left(), h.expire)
	}
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.end()
	}()
	if release == nil {
		return nil
	}

	defer context.AfterFunc(work, func() {
		if backoff.Sleep(bounded, releaseTime) {
			cancel()
		}
	})()
	waits := h.waits // of a renewal, which has more time
	waits.First, waits.Max = min(waits.First, releaseTime/10), min(waits.Max, releaseTime/2)
	waits.Reset()
	var last error
	for {
		err, lost := h.write(bounded, release, outcome)
		if bounded.Err() == nil || last == nil {
			last = err
		}
		switch {
		case err == nil, h.Release == nil:
			return outcome
		case lost:
			return unreleased(outcome, err)
		case !backoff.Sleep(bounded, waits.Next()):
			return unreleased(outcome, errors.Join(ErrLost, last))
		}
	}
}

// write makes one attempt to release, after the renewal that is on its way, and does not wait for longer than ctx.
func (h *holder) write(ctx context.Context, release func(context.Context, State) error, outcome error) (err error, lost bool) {
	h.mu.Lock()
	for h.writing != nil {
		writing := h.writing
		h.mu.Unlock()
		select {
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
	select {
	case a := <-answers:
		return a.err, a.lost
	case <-ctx.Done():
		return context.Cause(ctx), false
	}
}

// unreleased returns what Run returns for work whose lease was not released, and why not.
func unreleased(outcome, why error) error {
	// The cause may be the loss of a lease within which this one was held: then what Release has said is not in it.
	if stopped, ok := outcome.(*timeout.Error); ok && stopped.Cause == ErrLost && why == ErrLost {
		return outcome
	}
	return &unreleasedError{outcome, why}
}

type unreleasedError struct{ outcome, why error }

func (e *unreleasedError) Error() string {
	if e.outcome == nil {
		return fmt.Sprintf("lease: work is done and not released: %v", e.why)
	}
	return fmt.Sprintf("%v (lease: not released: %v)", e.outcome, e.why)
}

func (e *unreleasedError) Unwrap() []error {
	if e.outcome == nil { // which no list of errors may have
		return []error{e.why}
	}
	return []error{e.outcome, e.why}
}
