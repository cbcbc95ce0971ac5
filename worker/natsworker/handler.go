package natsworker

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/lease"
)

// Handler returns a handler for c.Consume that calls fn for each message under the limits of opts. The context of fn
// carries the heartbeat of the execution; a call of InProgress on the message is a heartbeat too. Pass
// [jetstream.PullMaxMessages](1) to Consume, because messages that wait in its buffer are not renewed.
//
// Until fn has returned or been abandoned, the handler renews the message every sixth of the consumer's AckWait, or of
// its shortest BackOff. Only the limits decide that fn is stuck. The package documentation lists the acknowledgement
// for each outcome. If fn acknowledges the message itself, that acknowledgement is the outcome, and fn's error is only
// logged.
//
// The handler returns when the outcome is confirmed or can no longer be confirmed, and no later than
// the end of the lease. It is safe for concurrent use: to handle n messages at a time, call c.Consume n
// times. Handler reads the consumer's settings from c.CachedInfo when it is called.
//
// Prefer [Run] if a message may take longer than AckWait. After a reconnect, Consume pulls a message
// while another one is in progress, and keeps doing so regardless of PullMaxMessages. The message in the
// buffer is not renewed, so each message is delivered twice.
//
// Handler returns an error that wraps a [*timeout.ConfigError] if c does not have the AckExplicit policy, because
// with other policies outcomes are lost or apply to other messages too; if the AckWait of c is positive but below
// 3 ms; if a BackOff is below 3 ms, even if it is 0, which the server accepts; if the value of a variable that the
// Policy names is invalid; or if c.CachedInfo returns nil.
// Handler panics with a *timeout.ConfigError if c or fn is nil, or if opts has a Drain, which only Run supports.
func Handler(c jetstream.Consumer, fn func(context.Context, jetstream.Msg) error, opts Options) (jetstream.MessageHandler, error) {
	if opts.Drain != 0 {
		panic(&timeout.ConfigError{Key: "natsworker.Options.Drain", Value: opts.Drain.String(), Accepted: "none for a Handler, or Run"})
	}
	w, err := newWorker(c, fn, opts)
	if err != nil {
		return nil, err
	}
	// The lease begins when the handler is called, because the time of Consume's request for msg is unknown. The sixth
	// of the lease that the worker does not rely on covers the time in transit.
	return func(msg jetstream.Msg) { w.handle(context.Background(), msg, time.Now()) }, nil
}

// handle calls the function for one message and sends the outcome. asked is an instant before the delivery, at which
// the lease is taken to begin. The function is aborted when ctx ends. If the function was abandoned, returned is a
// channel that is closed when the function returns; otherwise returned is nil.
func (w *worker) handle(ctx context.Context, msg jetstream.Msg, asked time.Time) (returned <-chan struct{}) {
	d := w.newDelivery(ctx, msg)
	since, ok := d.begin(asked)
	if !ok {
		d.warn("the message cannot be kept: it may have been redelivered")
		return nil
	}
	err := lease.Run(ctx, lease.Lease{Duration: w.lease, Every: w.every(), Since: since, Renew: d.renew, Release: d.release},
		func(ctx context.Context) error {
			defer close(d.returned)
			d.ctx, d.monitor = ctx, heartbeat.FromContext(ctx)
			d.begun.Store(true)
			err := w.fn(ctx, d)
			if err != nil {
				d.returnedVerdict = understand(err)
			}
			return err
		}, w.options(d)...)
	d.report(err)
	if !d.begun.Load() {
		return nil
	}
	select {
	case <-d.returned:
		return nil
	default:
		return d.returned
	}
}

// report logs how a delivery has ended, unless its ack is confirmed. err is the error of lease.Run. A stop of the
// function has already been logged by its execution.
func (d *delivery) report(err error) {
	end := d.ending()
	switch o := end.outcome; {
	case d.own.Load():
		if err != nil {
			d.warn("the function failed after acknowledging the message itself", "error", d.verdict(err).text)
		}
	case end.released && o.verb == term:
		d.warn("terminated", "reason", o.reason)
	case end.released && o.verb == nak:
		d.warn("given back", "delay", o.delay, "error", end.text)
	case end.released:
	case end.failed != nil && o.verb == ack:
		d.warn("ack unconfirmed: the message is done but may be redelivered", "error", end.failed)
	case end.failed != nil:
		d.warn("outcome unconfirmed: the message may wait for AckWait", "outcome", end.text, "error", end.failed)
	case !d.begun.Load() && err == lease.ErrLost:
		d.warn("the message arrived too late: it may have been redelivered")
	default:
		d.warn("lease lost: the message may have been redelivered", "error", d.verdict(err).text)
	}
}
