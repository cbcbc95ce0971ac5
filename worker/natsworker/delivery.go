package natsworker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/worker/lease"
)

// A delivery is a message as the function receives it, for as long as its lease lasts.
//
// The server does not distinguish deliveries of a message: an ack, nak or renewal acts on the delivery
// that is outstanding when it arrives. So one thing is sent at a time, by the goroutine that has the turn, and
// nothing once the lease has ended.
type delivery struct {
	jetstream.Msg
	w    *worker
	work context.Context // ends when the worker ends, not when the lease does
	turn chan struct{}   // full while a goroutine sends
	own  atomic.Bool     // the function has acknowledged the message itself

	// Written before the function begins.
	begun    atomic.Bool
	ctx      context.Context
	monitor  *heartbeat.Monitor
	returned chan struct{} // closed when the function returns

	returnedVerdict *verdict // for the error that the function has returned by itself; written by its goroutine

	decide  sync.Once
	decided chan struct{} // closed when the function may send nothing any more
	mu      sync.Mutex    // guards end: an attempt to send may outlast the wait for it
	end     ending
}

// An ending records what is known of the end of a delivery.
type ending struct {
	outcome  outcome
	text     string // the text of the execution's error
	failed   error  // the error of the newest attempt to send the outcome
	released bool   // the outcome is confirmed
}

func (d *delivery) note(f func(*ending)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(&d.end)
}

func (d *delivery) ending() ending {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.end
}

func (w *worker) newDelivery(work context.Context, msg jetstream.Msg) *delivery {
	return &delivery{Msg: msg, w: w, work: work, turn: make(chan struct{}, 1), decided: make(chan struct{}), returned: make(chan struct{})}
}

// meta returns the message's metadata, zero if the message is not from JetStream. It is parsed at each call.
func (d *delivery) meta() *jetstream.MsgMetadata {
	if meta, err := d.Metadata(); err == nil {
		return meta
	}
	return new(jetstream.MsgMetadata)
}

// logAttrs returns the attributes of a log record about a delivery.
func (d *delivery) logAttrs() []any {
	meta := d.meta()
	args := []any{"stream", meta.Stream, "consumer", meta.Consumer, "subject", d.Subject(),
		"sequence", meta.Sequence.Stream, "delivery", meta.NumDelivered}
	if id := d.Headers().Get(jetstream.MsgIDHeader); id != "" {
		args = append(args, "id", id)
	}
	return args
}

func (d *delivery) warn(what string, args ...any) { d.w.warn(what, append(d.logAttrs(), args...)...) }

// begin renews a delivery before its function begins, if the message was published longer ago than the time between two
// renewals: a server that is restarted forgets when it delivered a message that was not renewed. It assumes that the message
// was delivered when published, and delivers it again at once if that is longer ago than AckWait. begin returns
// the time from which the lease counts. It reports false if the renewal fails, as while a server restarts: then the message
// may be somebody else's already, and it comes again.
func (d *delivery) begin(asked time.Time) (since time.Time, ok bool) {
	published := d.meta().Timestamp
	if age := time.Since(published); published.IsZero() || 0 <= age && age < d.w.every() { // a negative age means that this clock is behind
		return asked, true
	}
	sent := time.Now()
	if sent.Sub(asked) >= d.w.lease-d.w.every() { // lease.Run finds that it is too late
		return asked, true
	}
	ctx, cancel := context.WithTimeout(d.work, d.w.attempt())
	defer cancel()
	err := d.renew(ctx, lease.Checkpoint{})
	if d.work.Err() != nil { // the caller gives the message back
		return asked, true
	}
	return sent, err == nil
}

// every returns the time between two renewals. When an outage begins, the last renewal may be that old; the rest of the time
// for which the lease is relied upon is the longest outage that costs no work. A renewal costs some 50 µs on both sides
// together. Rejected: every third of the lease, with which that outage was half of it.
func (w *worker) every() time.Duration { return w.lease / 6 }

// acquire waits for the turn to send.
func (d *delivery) acquire(ctx context.Context) error {
	select {
	case d.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (d *delivery) leave() { <-d.turn }

func (d *delivery) renew(ctx context.Context, _ lease.Checkpoint) error {
	if err := d.acquire(ctx); err != nil {
		return err
	}
	defer d.leave()
	if d.own.Load() { // an acknowledged message needs no renewal
		return nil
	}
	if err := d.w.reachable(ctx); err != nil {
		return err
	}
	return d.w.sendOnce(ctx, d.Msg, outcome{verb: inProgress})
}

// release makes one attempt to send the outcome.
func (d *delivery) release(ctx context.Context, s lease.Checkpoint) error {
	d.decide.Do(func() {
		close(d.decided)
		if s.Err != nil {
			v := d.verdict(s.Err)
			o := d.w.decide(d.work, s.Err, v, d.meta().NumDelivered)
			d.note(func(e *ending) { e.outcome, e.text = o, v.text })
		}
	})
	if d.ending().outcome.verb == nak {
		d.w.waitForPulls()
	}
	// The function may have been abandoned while sending an acknowledgement of its own. Then that
	// acknowledgement counts, if it arrives.
	if err := d.acquire(ctx); err != nil {
		return err
	}
	defer d.leave()
	if d.own.Load() {
		return nil
	}
	err := d.send(ctx)
	d.note(func(e *ending) { e.released = err == nil })
	return err
}

// send sends the outcome once. It returns an error that is final if another attempt must not or cannot follow. A nak is
// attempted once: if it has arrived and only its answer was lost, a second nak would apply to the next delivery. If it has
// not, the message is redelivered after AckWait.
func (d *delivery) send(ctx context.Context) error {
	before := d.ending()
	o := before.outcome
	// No probe precedes the first ack, because it costs as much as the ack. An ack that arrives late is still true, since
	// the work is done.
	if o.verb != ack || d.w.Conn != nil || before.failed != nil {
		if err := d.w.reachable(ctx); err != nil {
			d.note(func(e *ending) { e.failed = err })
			return final(err, isPermanent(err))
		}
	}
	err := d.w.sendOnce(ctx, d.Msg, o)
	if err == nil {
		return nil
	}
	if before.failed == nil || !errors.Is(err, jetstream.ErrMsgAlreadyAckd) { // the acknowledgement was published before, and nats.go publishes it only once
		d.note(func(e *ending) { e.failed = err })
	}
	return final(err, isPermanent(err) || o.verb == nak && !(d.w.Conn != nil && errors.Is(err, nats.ErrNoResponders)))
}

// final returns err. If last is set, it marks err so that nothing is sent any more.
func final(err error, last bool) error {
	if last {
		return fmt.Errorf("%w: %w", lease.ErrLost, err)
	}
	return err
}

// held returns an error if the function may not send anything any more: its outcome is on its way, which an
// acknowledgement must not overtake between two attempts, or the lease is lost.
func (d *delivery) held() error {
	if d.own.Load() {
		return jetstream.ErrMsgAlreadyAckd
	}
	select {
	case <-d.decided:
		return jetstream.ErrMsgAlreadyAckd
	default:
		return lease.Check(d.ctx)
	}
}

// ownAck sends an acknowledgement of the function itself.
func (d *delivery) ownAck(ctx context.Context, send func() error) error {
	select {
	case d.turn <- struct{}{}:
	case <-d.decided:
		return jetstream.ErrMsgAlreadyAckd
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer d.leave()
	err := d.held()
	if err == nil {
		err = send()
		d.own.Store(err == nil)
	}
	return err
}

func (d *delivery) Ack() error { return d.ownAck(context.Background(), d.Msg.Ack) }

func (d *delivery) DoubleAck(ctx context.Context) error {
	return d.ownAck(ctx, func() error { return d.Msg.DoubleAck(ctx) })
}

func (d *delivery) Nak() error { return d.ownNak(d.Msg.Nak) }

func (d *delivery) NakWithDelay(delay time.Duration) error {
	return d.ownNak(func() error { return d.Msg.NakWithDelay(delay) })
}

func (d *delivery) Term() error { return d.ownNak(d.Msg.Term) }

func (d *delivery) TermWithReason(reason string) error {
	return d.ownNak(func() error { return d.Msg.TermWithReason(reason) })
}

// ownNak sends an acknowledgement that would be wrong if it arrived late. It fails while the connection
// is lost.
func (d *delivery) ownNak(send func() error) error {
	return d.ownAck(context.Background(), func() error {
		if err := d.w.reachable(context.Background()); err != nil {
			return err
		}
		if err := d.held(); err != nil { // the probe may have taken long
			return err
		}
		return send()
	})
}

// InProgress beats the heartbeat. It sends nothing, because renewals are sent anyway.
func (d *delivery) InProgress() error {
	if err := d.held(); err != nil {
		return err
	}
	d.monitor.Beat()
	return nil
}
