package natsworker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/heartbeat"
)

// ErrLeaseLost is the cause of a function's context when no renewal has reached the server in time, so
// that the message may be redelivered to another worker. The execution's error wraps it.
var ErrLeaseLost = errors.New("natsworker: lease lost: the message may have been redelivered")

// A delivery is a message as the function receives it, for as long as its lease lasts.
//
// The server does not distinguish deliveries of a message: an ack, nak or renewal of this one acts on
// whichever is outstanding when it arrives. So one thing is sent at a time, by the goroutine that has
// acquired the delivery, and nothing once over is set.
type delivery struct {
	jetstream.Msg
	w       *worker
	monitor *heartbeat.Monitor
	lose    context.CancelCauseFunc // of the function's context
	said    *verdict                // of an error that the function has returned by itself; written by its goroutine

	mu            sync.Mutex
	busy          bool          // something is being sent
	freed         chan struct{} // closed when busy ends; made by the goroutine that waits for it
	concluding    bool          // the outcome is being sent, and nothing else begins any more
	over          error         // nil during the lease, then ErrMsgAlreadyAckd or ErrLeaseLost
	until         time.Time     // the lease is relied upon until then
	cancelRenewal func()        // of the one that is being sent
	renewal       *time.Timer
	loss          *time.Timer // from the first renewal on; most messages are done before
}

// newDelivery begins the lease of a message at begun, before which the server cannot have sent it. AckWait
// begins when the server sends the message, however long it is on its way.
func (w *worker) newDelivery(msg jetstream.Msg, begun time.Time, lose context.CancelCauseFunc) *delivery {
	d := &delivery{Msg: msg, w: w, lose: lose}
	d.until = begun.Add(w.sure())
	d.mu.Lock() // renew reads d.renewal
	d.renewal = time.AfterFunc(time.Until(begun.Add(min(w.every(), firstRenewal))), d.renew)
	d.mu.Unlock()
	return d
}

// begins reports whether the message has arrived within its lease.
func (d *delivery) begins() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.isOver()
}

// meta returns the message's metadata, zero if the message is not from JetStream. It is parsed at each
// call, because most messages do not need it.
func (d *delivery) meta() *jetstream.MsgMetadata {
	if meta, err := d.Metadata(); err == nil {
		return meta
	}
	return new(jetstream.MsgMetadata)
}

// about returns the attributes with which a log record about a delivery begins.
func (d *delivery) about(args ...any) []any {
	meta := d.meta()
	return append([]any{
		"stream", meta.Stream, "consumer", meta.Consumer, "subject", d.Subject(),
		"sequence", meta.Sequence.Stream, "delivery", meta.NumDelivered}, args...)
}

// every is the time between two renewals. When an outage begins, the last renewal may be that old; the
// rest of sure is the longest outage that costs no work. A renewal costs some 50 µs on both sides
// together. Rejected: every third of the lease, with which that outage was half of it.
func (w *worker) every() time.Duration { return w.lease / 6 }

// firstRenewal is when the first renewal is sent, if a sixth of the lease is longer. A server that is restarted takes a
// message that was not renewed for one that was delivered when it was published, and delivers it again at once if that is
// longer ago than AckWait. Rejected: a renewal right away, which most messages do not live to see.
const firstRenewal = time.Second

// sure is how long a renewal is relied upon. In the rest of the lease the function can stop before the
// message is redelivered. If the lease is at least 6 s, the rest also covers that a restarted server
// knows the time of the last renewal only in whole seconds, rounded down.
func (w *worker) sure() time.Duration { return w.lease - w.lease/6 }

// renew runs on the timer's goroutine, one call at a time: only its end sets the timer again.
func (d *delivery) renew() {
	d.mu.Lock()
	if d.isOver() || d.concluding {
		d.mu.Unlock()
		return
	}
	ctx, cancel := context.WithDeadline(context.Background(), d.until)
	defer cancel()
	d.cancelRenewal = cancel
	if d.loss == nil {
		// A timer of its own, since sending may block in the connection.
		d.loss = time.AfterFunc(time.Until(d.until), d.expire)
	}
	d.mu.Unlock()

	if d.acquire(ctx, false) != nil {
		return
	}
	sent, err := d.w.send(ctx, d.Msg, inProgress, 0, "")
	d.release()

	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil || d.over != nil {
		return // in the first case expire follows
	}
	d.until = sent.Add(d.w.sure())
	d.loss.Reset(time.Until(d.until))
	d.renewal.Reset(time.Until(sent.Add(d.w.every())))
}

// expire ends the lease, unless it has been renewed meanwhile.
func (d *delivery) expire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.isOver()
}

// isOver reports whether nothing may be sent any more. It ends a lease that has run out. The lock is
// held.
func (d *delivery) isOver() bool {
	if d.over == nil && !time.Now().Before(d.until) {
		d.end(ErrLeaseLost)
		d.lose(ErrLeaseLost)
	}
	return d.over != nil
}

// end ends the lease. The lock is held.
func (d *delivery) end(why error) {
	d.over = why
	d.wake()
	d.renewal.Stop()
	if d.loss != nil {
		d.loss.Stop()
	}
	if d.cancelRenewal != nil {
		d.cancelRenewal()
	}
}

// acquire waits until nothing else is being sent. It fails if nothing may be sent any more. If own is set, the function
// itself asks: it may send nothing once its outcome is on its way, or it would go first between two attempts at that.
func (d *delivery) acquire(ctx context.Context, own bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.busy && !d.isOver() && !(own && d.concluding) {
		if d.freed == nil {
			d.freed = make(chan struct{})
		}
		freed := d.freed
		d.mu.Unlock()
		select {
		case <-freed:
			d.mu.Lock()
		case <-ctx.Done():
			d.mu.Lock()
			return context.Cause(ctx)
		}
	}
	if d.isOver() {
		return d.over
	}
	if own && d.concluding {
		return jetstream.ErrMsgAlreadyAckd
	}
	if ctx.Err() != nil { // of a renewal, since the outcome was sent
		return context.Cause(ctx)
	}
	d.busy = true
	return nil
}

func (d *delivery) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy = false
	d.wake()
}

// wake lets those who wait in acquire look again. The lock is held.
func (d *delivery) wake() {
	if d.freed != nil {
		close(d.freed)
		d.freed = nil
	}
}

// stopTime is how long a worker that stops tries to get an outcome confirmed.
const stopTime = 5 * time.Second

// conclude sends the outcome. It retries until the lease ends, but only for stopTime after work has ended.
func (d *delivery) conclude(work context.Context, o outcome) error {
	connected := d.w.Conn == nil || d.w.Conn.IsConnected()
	d.mu.Lock()
	if d.isOver() {
		defer d.mu.Unlock()
		return d.over
	}
	d.concluding = true
	d.wake()
	d.renewal.Stop()
	if d.cancelRenewal != nil {
		d.cancelRenewal()
	}
	until := d.until
	fast := o.verb == ack && connected && !d.busy
	if fast {
		d.busy = true
	}
	d.mu.Unlock()

	var err error
	if fast {
		err = d.ackFast(until)
	}
	if !fast || err != nil {
		err = d.sendOutcome(work, until, o)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over == nil {
		d.end(jetstream.ErrMsgAlreadyAckd)
	}
	return err
}

// ackFast acknowledges nearly all messages. It does not probe the server first, because a probe costs as
// much as the ack. An ack that arrives late is still true: the work is done. The caller has acquired the
// delivery, and ackFast releases it.
func (d *delivery) ackFast(until time.Time) error {
	defer d.release()
	ctx, cancel := context.WithTimeout(context.Background(), min(d.w.attempt(), time.Until(until)))
	defer cancel()
	return d.Msg.DoubleAck(ctx)
}

func (d *delivery) sendOutcome(work context.Context, until time.Time, o outcome) error {
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	defer context.AfterFunc(work, func() {
		select {
		case <-ctx.Done():
		case <-time.After(stopTime):
			cancel()
		}
	})()
	// The function may have been abandoned while sending an acknowledgement of its own. Then that
	// one counts, if it arrives.
	if err := d.acquire(ctx, false); err != nil {
		return err
	}
	defer d.release()
	_, err := d.w.send(ctx, d.Msg, o.verb, o.delay, o.reason)
	return err
}

// ownAck sends an acknowledgement of the function itself.
func (d *delivery) ownAck(ctx context.Context, send func() error) error {
	if err := d.acquire(ctx, true); err != nil {
		return err
	}
	defer d.release()
	err := send()
	if err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.over == nil {
			d.end(jetstream.ErrMsgAlreadyAckd)
		}
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
		return send()
	})
}

// InProgress is a heartbeat. It sends nothing, because renewals are sent anyway.
func (d *delivery) InProgress() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isOver() {
		return d.over
	}
	d.monitor.Beat()
	return nil
}
