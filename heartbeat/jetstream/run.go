package hbjetstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrStuck is what [Run] returns when all of its functions have been abandoned and none has
// returned since: the process is best restarted.
var ErrStuck = errors.New("hbjetstream: every function has been abandoned and still runs")

// Run calls fn, for up to n messages of c at a time, as [Handler] does, until ctx ends or
// taking messages makes no sense any more. A message is asked for when there is a function
// free to take it, never before, so that none waits here while its AckWait runs. A function
// that was abandoned is free when it has returned.
//
// When ctx ends, no more messages are taken. What runs is aborted, with the cause of ctx, or
// goes on for as long as [WithDrain] says and is aborted then; its messages are given back
// and may be delivered to another worker at once. Run returns when all of that is done and
// known to be: at the latest a second for what was being asked for, or the drain, the grace
// and 5 s after ctx has ended. Then the result is nil.
//
// It is an error if n is less than 1, if c does not have the AckExplicit policy, if the
// consumer or its stream are deleted, if the connection is closed, or if all n functions are
// abandoned and none returns within AckWait ([ErrStuck]). What runs then is ended as above.
// While the connection is lost, or the server away, Run waits. Panics if c or fn is nil.
//
// Until Run returns, c must be used for nothing else, since Run calls c.Info, which is not
// safe for concurrent use.
func Run(ctx context.Context, c jetstream.Consumer, n int, fn func(context.Context, jetstream.Msg) error, opts ...Option) error {
	w, err := newWorker(c, fn, opts)
	if err != nil {
		return err
	}
	if n < 1 {
		return fmt.Errorf("hbjetstream: %d messages at a time: want 1 or more", n)
	}
	if ctx.Err() != nil {
		return nil
	}
	take, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w.owner = &owner{take: take, asking: make(chan struct{}, 1)}
	// The work does not end with ctx, but when this says so.
	work, abort := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abort(nil)

	var failure atomic.Pointer[error]
	fail := func(err error) {
		if take.Err() == nil { // or it is a consequence of the end, and not its reason
			failure.CompareAndSwap(nil, &err)
			stop(err)
		}
	}
	var slots, drain sync.WaitGroup
	stuck := &stuck{of: n, after: w.lease, fail: fail}
	for range n {
		slots.Go(func() {
			if err := w.slot(work, stuck); err != nil {
				fail(err)
			}
		})
	}
	ended := make(chan struct{})
	drain.Go(func() {
		select {
		case <-take.Done():
		case <-ended:
			return
		}
		if w.drain > 0 {
			select {
			case <-time.After(w.drain):
			case <-ended:
			}
		}
		abort(context.Cause(take))
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

// slot works on one message after the other. A nil error means that take has ended.
func (w *worker) slot(work context.Context, stuck *stuck) error {
	for w.take.Err() == nil {
		msg, err := w.next()
		if err != nil {
			return err
		}
		if msg == nil {
			continue
		}
		if w.take.Err() != nil {
			w.giveBack(work, msg)
			return nil
		}
		returned := w.handle(work, msg)
		if returned == nil {
			continue
		}
		stuck.hold()
		select {
		case <-returned:
			stuck.release()
		case <-w.take.Done():
		}
	}
	return nil
}

// poll is how long a request for a message stays with the server. One that is taken back
// earlier may have been answered with a message that then nobody has, until AckWait.
const poll = time.Second

// next gives a message, nil if there is none or the server is away for now, and an error if
// there will be none any more.
func (w *worker) next() (jetstream.Msg, error) {
	msg, err := w.request()
	if errors.Is(err, nats.ErrNoResponders) {
		// The server, or only what would answer for this consumer: for good, or for now.
		if e := w.ask(w.take); e != nil {
			err = e
		}
	}
	switch {
	case err == nil, errors.Is(err, nats.ErrTimeout):
		return msg, nil
	case gone(err), hopeless(err):
		return nil, fmt.Errorf("hbjetstream: no more messages: %w", err)
	}
	w.log.Warn("no message can be asked for", "stream", w.info.Stream, "consumer", w.info.Name, "error", err)
	select {
	case <-w.take.Done():
	case <-time.After(poll):
	}
	return nil, nil
}

func (w *worker) request() (jetstream.Msg, error) {
	if !w.mayAsk() {
		return nil, nil
	}
	defer w.asks.Done()
	wait := poll
	if most := w.info.Config.MaxRequestExpires; most > 0 {
		wait = min(wait, most)
	}
	return w.c.Next(jetstream.FetchMaxWait(wait))
}

// giveBack is for a message that arrives when the worker stops.
func (w *worker) giveBack(work context.Context, msg jetstream.Msg) {
	d := w.deliver(msg, func(error) {})
	w.hush()
	if err := d.settle(work, outcome{verb: nak}); err != nil {
		w.warn("the worker stops, and the message waits for AckWait", d, "error", err)
	}
}

func gone(err error) bool {
	for _, e := range []error{jetstream.ErrConsumerDeleted, jetstream.ErrConsumerNotFound, jetstream.ErrStreamNotFound,
		jetstream.ErrBadRequest, jetstream.ErrInvalidOption} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// A stuck stops a Run of which nothing is left but abandoned functions.
type stuck struct {
	of    int
	after time.Duration
	fail  func(error)

	mu    sync.Mutex
	held  int
	timer *time.Timer
}

func (s *stuck) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held++; s.held == s.of {
		s.timer = time.AfterFunc(s.after, func() { s.fail(ErrStuck) })
	}
}

func (s *stuck) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held--
	s.end()
}

func (s *stuck) end() {
	if s.timer != nil {
		s.timer.Stop()
	}
}
