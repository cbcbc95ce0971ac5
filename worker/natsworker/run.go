package natsworker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/lease"
)

// ErrStuck is the error of [Run] when n functions, as many as may run at a time, have been abandoned and none of them
// has returned within AckWait, or the shortest BackOff, of the last abandonment. The process should be restarted.
var ErrStuck = errors.New("natsworker: all functions have been abandoned and are still running")

// Run calls fn for the messages of c, up to n at a time, as a [Handler] does. It pulls a message only when fewer than n
// functions run, so that no message waits in a buffer while its AckWait passes. An abandoned function counts until it
// returns.
//
// When ctx ends, Run pulls no more messages and aborts the functions in progress, with the cause of ctx: at once, or
// after opts.Drain. Their messages are given back, and redelivered at once, or after the grace if the function was
// abandoned. In the last delivery the message is terminated instead. Run returns nil when the server has confirmed
// this, and no later than the drain, the grace and 10 s after the end of ctx, or 2 s after the end of ctx if no
// function is in progress.
//
// Run ends in the same way, but with an error, if the consumer or its stream is deleted, if the consumer does not
// accept pull requests, if the connection is closed or draining, or if all n functions are abandoned and none returns
// in time ([ErrStuck]). While the connection is lost or the server unavailable, Run waits. If n is less than 1, c has
// PriorityGroups, or [Handler] would return an error, Run returns an error at once that wraps a [*timeout.ConfigError].
//
// Nothing else may use c until Run returns, because c.Info is not safe for concurrent use.
//
// Run panics with a *timeout.ConfigError if c or fn is nil.
func Run(ctx context.Context, c jetstream.Consumer, n int, fn func(context.Context, jetstream.Msg) error, opts Options) error {
	w, err := newWorker(c, fn, opts)
	if err != nil {
		return err
	}
	if g := w.info.Config.PriorityGroups; len(g) > 0 {
		return unfit(w.info, "PriorityGroups", g, "none, or a Handler")
	}
	if n < 1 {
		return fmt.Errorf("natsworker: %w", &timeout.ConfigError{Key: "messages at a time", Value: strconv.Itoa(n), Accepted: "1 or more"})
	}
	if ctx.Err() != nil {
		return nil
	}
	pulling, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w.owner = &owner{pulling: pulling, probing: make(chan struct{}, 1)}
	// The functions are aborted when work ends, which may be later than the end of ctx.
	work, abort := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abort(nil)

	var failure atomic.Pointer[error]
	fail := func(err error) {
		if pulling.Err() == nil { // a later error is only a consequence of that end
			failure.CompareAndSwap(nil, &err)
			stop(err)
		}
	}
	var slots, drain sync.WaitGroup
	stuck := &abandonment{most: n, after: w.lease, fail: fail}
	for range n {
		slots.Go(func() {
			if err := w.slot(work, stuck); err != nil {
				fail(err)
			}
		})
	}
	ended := make(chan struct{})
	drain.Go(func() {
		select { // if all slots have ended, there is nothing to abort
		case <-pulling.Done():
		case <-ended:
			return
		}
		if w.Drain > 0 {
			select {
			case <-time.After(w.Drain):
			case <-ended:
			}
		}
		abort(context.Cause(pulling))
	})
	slots.Wait()
	close(ended)
	drain.Wait()
	stuck.end()

	if err := failure.Load(); err != nil {
		return *err
	}
	return nil
}

// slot handles one message after the other, until w.pulling ends; then it returns nil. It returns an error if no more
// messages can be pulled. While an abandoned function of the slot runs, it pulls none.
func (w *worker) slot(work context.Context, stuck *abandonment) error {
	for w.pulling.Err() == nil {
		asked := time.Now()
		msg, err := w.next()
		if err != nil {
			return err
		}
		if msg == nil {
			continue
		}
		if w.pulling.Err() != nil {
			w.giveBack(work, msg, asked)
			return nil
		}
		returned := w.handle(work, msg, asked)
		if returned == nil {
			continue
		}
		stuck.hold()
		select { // once pulling has ended, nothing is done about stuck functions
		case <-returned:
			stuck.release()
		case <-w.pulling.Done():
		}
	}
	return nil
}

// poll is the longest duration of a pull request. It is short because requests are not cancelled when the worker stops:
// a message in transit at that moment would be redelivered only after AckWait.
const poll = time.Second

// wait returns the duration of a pull request. The lease of a message is taken to begin with the request, so wait is at
// most the interval of renewals: a message that arrives last still has most of its lease.
func (w *worker) wait() time.Duration {
	wait := min(poll, max(w.every(), 10*time.Millisecond)) // the server rejects a wait of 0
	if most := w.info.Config.MaxRequestExpires; most > 0 {
		wait = min(wait, most)
	}
	return wait
}

// next returns a message. It returns nil and nil if none has arrived in time or the request has failed for now, and an
// error if no more messages can be pulled.
func (w *worker) next() (jetstream.Msg, error) {
	msg, err := w.request()
	if errors.Is(err, nats.ErrNoResponders) {
		// The server or the consumer is unavailable, or the consumer has been deleted.
		if e := w.probe(w.pulling); e != nil {
			err = e
		}
	}
	switch {
	case err == nil, errors.Is(err, nats.ErrTimeout):
		return msg, nil
	case isConsumerGone(err), isPermanent(err):
		return nil, fmt.Errorf("natsworker: cannot consume: %w", err)
	}
	w.warn("pull request failed", "stream", w.info.Stream, "consumer", w.info.Name, "error", err)
	select {
	case <-w.pulling.Done():
	case <-time.After(poll):
	}
	return nil, nil
}

// request makes one pull request. It returns nil and nil if the worker is stopping.
func (w *worker) request() (jetstream.Msg, error) {
	if !w.beginPull() {
		return nil, nil
	}
	defer w.pulls.Done()
	return w.c.Next(jetstream.FetchMaxWait(w.wait()))
}

// giveBack sends a nak for a message that has arrived while the worker is stopping.
func (w *worker) giveBack(work context.Context, msg jetstream.Msg, asked time.Time) {
	d := w.newDelivery(work, msg)
	d.decide.Do(func() { d.end.outcome, d.end.text = outcome{verb: nak}, "the worker stops" })
	_ = lease.Run(work, lease.Lease{Duration: w.lease, Since: asked, Renew: d.renew, Release: d.release},
		func(context.Context) error { return nil }, timeout.Config{})
	if end := d.ending(); !end.released {
		d.warn("outcome unconfirmed: the message may wait for AckWait", "outcome", end.text, "error", end.failed)
	}
}

// isConsumerGone reports whether err means that the consumer or its stream has been deleted or cannot be pulled from.
func isConsumerGone(err error) bool {
	for _, e := range []error{jetstream.ErrConsumerDeleted, jetstream.ErrConsumerNotFound, jetstream.ErrStreamNotFound,
		jetstream.ErrBadRequest, jetstream.ErrInvalidOption} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// An abandonment counts the abandoned functions that still run. When there have been most for the time after, it calls
// fail with ErrStuck.
type abandonment struct {
	most  int
	after time.Duration
	fail  func(error)

	mu    sync.Mutex
	held  int         // number of abandoned functions that still run
	timer *time.Timer // calls fail; set when held reaches most
}

func (s *abandonment) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held++; s.held == s.most {
		s.timer = time.AfterFunc(s.after, func() { s.fail(ErrStuck) })
	}
}

func (s *abandonment) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held--
	s.end()
}

func (s *abandonment) end() {
	if s.timer != nil {
		s.timer.Stop()
	}
}
