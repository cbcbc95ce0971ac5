package hbjetstream

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/heartbeat"
)

// ErrLeaseLost is the cause of a function's context, and is in the tree of the error of its
// execution, when the server could not be told in time that the message is still being
// worked on: it may be given to another worker from now on.
var ErrLeaseLost = errors.New("hbjetstream: the message may be another worker's by now")

// A delivery is a message as the function gets it, for as long as it is ours.
//
// The server tells deliveries of a message apart by nothing: an ack, nak or in-progress of
// this one acts on the one that is out when it arrives. So there is one way out, wire, and
// one word that closes it, over.
type delivery struct {
	jetstream.Msg
	w       *worker
	monitor *heartbeat.Monitor
	lose    context.CancelCauseFunc // of the function's context

	wire chan struct{} // full while something is being sent

	mu      sync.Mutex
	over    error     // nil while it is ours, then ErrMsgAlreadyAckd or ErrLeaseLost
	until   time.Time // it is certainly ours before
	hush    func()    // ends the renewal that is being sent
	renewal *time.Timer
	loss    *time.Timer // from the first renewal on; most messages are done before
}

func (w *worker) deliver(msg jetstream.Msg, lose context.CancelCauseFunc) *delivery {
	d := &delivery{Msg: msg, w: w, lose: lose, wire: make(chan struct{}, 1)}
	// The server's time began when it sent the message. What there is of it on the way is
	// covered by what is left of the lease when until comes.
	d.until = time.Now().Add(w.sure())
	d.mu.Lock() // renew reads renewal
	d.renewal = time.AfterFunc(w.lease/3, d.renew)
	d.mu.Unlock()
	return d
}

// meta is zero where the message is not of JetStream. It is read out of the message each
// time, which most messages need not pay for.
func (d *delivery) meta() *jetstream.MsgMetadata {
	if meta, err := d.Metadata(); err == nil {
		return meta
	}
	return new(jetstream.MsgMetadata)
}

// sure is for how long a renewal is relied upon. The rest is for the function to stop in,
// before the message is somebody else's.
func (w *worker) sure() time.Duration { return w.lease - w.lease/6 }

// renew runs on the timer's goroutine, and is never running twice.
func (d *delivery) renew() {
	d.mu.Lock()
	if d.ended() {
		d.mu.Unlock()
		return
	}
	ctx, cancel := context.WithDeadline(context.Background(), d.until)
	defer cancel()
	d.hush = cancel
	if d.loss == nil {
		// On its own, since what is sent may block in the connection.
		d.loss = time.AfterFunc(time.Until(d.until), d.expire)
	}
	d.mu.Unlock()

	if d.take(ctx) != nil {
		return
	}
	sent, err := d.w.tell(ctx, d.Msg, inProgress, 0, "")
	d.release()

	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil || d.over != nil {
		return // expire will be called, or need not be
	}
	d.until = sent.Add(d.w.sure())
	d.loss.Reset(time.Until(d.until))
	d.renewal.Reset(time.Until(sent.Add(d.w.lease / 3)))
}

// expire is the end if no renewal has come between.
func (d *delivery) expire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended()
}

// ended says whether nothing may be sent any more, and notices when that is so because time
// has run out. It is called with the lock held.
func (d *delivery) ended() bool {
	if d.over == nil && !time.Now().Before(d.until) {
		d.end(ErrLeaseLost)
		d.lose(ErrLeaseLost)
	}
	return d.over != nil
}

// end is called with the lock held.
func (d *delivery) end(why error) {
	d.over = why
	d.renewal.Stop()
	if d.loss != nil {
		d.loss.Stop()
	}
	if d.hush != nil {
		d.hush()
	}
}

// take gets hold of the wire, if there is still something to be sent.
func (d *delivery) take(ctx context.Context) error {
	select {
	case d.wire <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended() {
		d.release()
		return d.over
	}
	return nil
}

func (d *delivery) release() { <-d.wire }

// stopTime is for how long a worker that stops tries to have an outcome stored.
const stopTime = 5 * time.Second

// settle sends the last word. It tries for as long as the message is ours and, where the
// work has ended, not much longer.
func (d *delivery) settle(work context.Context, o outcome) error {
	d.mu.Lock()
	if d.ended() {
		defer d.mu.Unlock()
		return d.over
	}
	d.renewal.Stop()
	if d.hush != nil {
		d.hush()
	}
	until := d.until
	d.mu.Unlock()

	err := d.ackQuickly(until, o)
	if err != nil {
		err = d.tell(work, until, o)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over == nil {
		d.end(jetstream.ErrMsgAlreadyAckd)
	}
	return err
}

var errNotQuickly = errors.New("not an ack, or not connected")

// ackQuickly is for nearly all messages. It does not look first whether the server can be
// reached, where looking costs as much as an ack: should an ack arrive late, it still says
// what is true, that the work is done.
func (d *delivery) ackQuickly(until time.Time, o outcome) error {
	if o.verb != ack || d.w.conn != nil && !d.w.conn.IsConnected() {
		return errNotQuickly
	}
	ctx, cancel := context.WithTimeout(context.Background(), min(d.w.attempt(), time.Until(until)))
	defer cancel()
	if err := d.take(ctx); err != nil {
		return err
	}
	defer d.release()
	return d.Msg.DoubleAck(ctx)
}

func (d *delivery) tell(work context.Context, until time.Time, o outcome) error {
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	defer context.AfterFunc(work, func() {
		select {
		case <-ctx.Done():
		case <-time.After(stopTime):
			cancel()
		}
	})()
	// What else may hold the wire is an ack of the function itself that has been abandoned
	// in it. Then it is the last word.
	if err := d.take(ctx); err != nil {
		return err
	}
	defer d.release()
	_, err := d.w.tell(ctx, d.Msg, o.verb, o.delay, o.reason)
	return err
}

// own sends an ack of the function itself.
func (d *delivery) own(ctx context.Context, send func() error) error {
	if err := d.take(ctx); err != nil {
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

func (d *delivery) Ack() error { return d.own(context.Background(), d.Msg.Ack) }

func (d *delivery) DoubleAck(ctx context.Context) error {
	return d.own(ctx, func() error { return d.Msg.DoubleAck(ctx) })
}

func (d *delivery) Nak() error { return d.own(context.Background(), d.Msg.Nak) }

func (d *delivery) NakWithDelay(delay time.Duration) error {
	return d.own(context.Background(), func() error { return d.Msg.NakWithDelay(delay) })
}

func (d *delivery) Term() error { return d.own(context.Background(), d.Msg.Term) }

func (d *delivery) TermWithReason(reason string) error {
	return d.own(context.Background(), func() error { return d.Msg.TermWithReason(reason) })
}

// InProgress is a heartbeat. The server hears of it by the renewals.
func (d *delivery) InProgress() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended() {
		return d.over
	}
	d.monitor.Beat()
	return nil
}
