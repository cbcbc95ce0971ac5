package natsworker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/lease"
)

// A delivery is the message that the function receives. It exists for as long as its lease.
//
// The server does not distinguish deliveries of a message: an ack, nak or renewal acts on the delivery that is
// outstanding when it arrives. Therefore one goroutine at a time sends, while it holds the turn, and nothing is sent
// once the lease has ended.
type delivery struct {
	jetstream.Msg
	w    *worker
	work context.Context // ends when the worker ends, not when the lease does
	turn chan struct{}   // full while a goroutine sends
	own  atomic.Bool     // the function has acknowledged the message itself

	// ctx and monitor belong to the execution, and are set before begun.
	begun    atomic.Bool
	ctx      context.Context
	monitor  *heartbeat.Monitor
	returned chan struct{} // closed when the function returns

	returnedVerdict *verdict // the verdict on the function's error; set before the function returns

	decide  sync.Once     // closes decided and sets end.outcome
	decided chan struct{} // closed when the outcome has been decided, after which the function may not acknowledge
	mu      sync.Mutex    // guards end, because an attempt to send may continue after the wait for it has ended
	end     ending
}

// An ending records how a delivery has ended.
type ending struct {
	outcome  outcome
	text     string // the text of the execution's error
	failed   error  // the error of the newest attempt to send the outcome
	released bool   // the outcome is confirmed
}

// note calls f with the ending, while it holds d.mu.
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

// meta returns the message's metadata, which it parses at each call. If the message is not from JetStream, it returns
// the zero metadata.
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

// begin renews a delivery before its function begins, if the message was published longer ago than the interval of
// renewals. It is necessary because a restarted server no longer knows when it delivered a message that was not
// renewed: it assumes the time of publication, and redelivers the message at once if that is longer ago than AckWait.
// begin returns the time at which the lease begins. It returns false if the renewal fails, for example during a
// restart: another worker may then have the message, and the server redelivers it.
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
	if d.work.Err() != nil { // lease.Run gives the message back
		return asked, true
	}
	return sent, err == nil
}

// acquire waits for the turn to send. It returns the cause of ctx if ctx ends first.
func (d *delivery) acquire(ctx context.Context) error {
	select {
	case d.turn <- struct{}{}:
		if ctx.Err() == nil {
			return nil
		}
		d.leave() // the end of ctx wins, because not everything that follows observes it
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

func (d *delivery) leave() { <-d.turn }

// renew makes one attempt to renew the delivery. It returns nil once the function has acknowledged the message itself.
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

// release makes one attempt to send the outcome, which the first call decides. It returns nil if the function has
// acknowledged the message itself.
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
	// An abandoned function may still hold the turn, to send its own acknowledgement. If it succeeds, that is the
	// outcome.
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

// send makes one attempt to send the outcome. The error wraps [lease.ErrLost] if no further attempt may follow. A nak
// is attempted only once: if only the answer to the first was lost, a second nak would apply to the next delivery. If
// the first nak was lost, the message is redelivered after AckWait.
func (d *delivery) send(ctx context.Context) error {
	before := d.ending()
	o := before.outcome
	// No probe precedes the first ack, because it costs as much as the ack. An ack may arrive late, because the work is
	// done.
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
	if before.failed == nil || !errors.Is(err, jetstream.ErrMsgAlreadyAckd) { // nats.go publishes an ack only once
		d.note(func(e *ending) { e.failed = err })
	}
	return final(err, isPermanent(err) || o.verb == nak && !(d.w.Conn != nil && errors.Is(err, nats.ErrNoResponders)))
}

// final returns err or, if last is set, an error that wraps err and [lease.ErrLost], so that no attempt follows.
func final(err error, last bool) error {
	if last {
		return fmt.Errorf("%w: %w", lease.ErrLost, err)
	}
	return err
}

// held returns an error if the function may no longer acknowledge the message: the function has acknowledged it, the
// worker has decided its outcome, which an acknowledgement could overtake, or the lease is lost.
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

// verdict returns the verdict on err, the error of lease.Run. If the function returned err, the verdict is
// d.returnedVerdict. If the function was stopped, verdict does not read that field, which an abandoned function may be
// writing, and the verdict has only a text.
func (d *delivery) verdict(err error) *verdict {
	switch err.(type) {
	case *timeout.Error:
	case *timeout.PanicError: // perhaps of a method of the function's error
	default:
		if d.returnedVerdict != nil {
			return d.returnedVerdict
		}
	}
	return &verdict{text: text(err)}
}

// ownAck calls send, which sends an acknowledgement of the function itself, while it holds the turn. It returns the
// error of held or send.
func (d *delivery) ownAck(ctx context.Context, send func() error) error {
	select { // the error of held wins over that of ctx, which send returns too
	case d.turn <- struct{}{}:
	case <-d.decided:
		return jetstream.ErrMsgAlreadyAckd
	case <-ctx.Done():
		return cmp.Or(d.held(), ctx.Err())
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

// ownNak is ownAck for a nak or term, which must not arrive late, at the next delivery. It returns an error while the
// connection is known to be lost.
func (d *delivery) ownNak(send func() error) error {
	return d.ownAck(context.Background(), func() error {
		if err := d.w.reachable(context.Background()); err != nil {
			return err
		}
		if err := d.held(); err != nil { // again, because reachable may have waited
			return err
		}
		return send()
	})
}

// InProgress is a heartbeat of the function. It sends nothing, because the worker renews the message. It returns an
// error if the message has been acknowledged or its lease is lost.
func (d *delivery) InProgress() error {
	if err := d.held(); err != nil {
		return err
	}
	d.monitor.Beat()
	return nil
}
