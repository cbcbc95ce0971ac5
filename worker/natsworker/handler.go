package natsworker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Handler returns a handler for c.Consume that calls fn for each message under the limits of opts. fn's context carries the heartbeat; calling InProgress on the message is a heartbeat
// too. Pass [jetstream.PullMaxMessages](1) to Consume, because messages that wait in its buffer are
// not renewed.
//
// Until fn has returned or been abandoned, the message is kept: a renewal is sent every sixth of
// the consumer's AckWait, or of its shortest BackOff. Only the limits decide that fn is stuck. The
// package documentation lists what is sent for each outcome. If fn acknowledges the message itself,
// that acknowledgement is the outcome, and fn's error is only logged.
//
// The handler returns when the outcome is confirmed or can no longer be confirmed, and no later than
// the end of the lease. It is safe for concurrent use: to handle n messages at a time, call c.Consume n
// times. The consumer's settings are those of c.CachedInfo when Handler is called.
//
// Prefer [Run] if a message may take longer than AckWait. After a reconnect, Consume pulls a message
// while another one is in progress, and keeps doing so regardless of PullMaxMessages. The message in the
// buffer is not renewed, so each message is delivered twice.
//
// The error wraps a [*timeout.ConfigError] if c does not have the AckExplicit policy: with other
// policies outcomes are lost, or apply to other messages too. Handler panics with one if c or fn is nil,
// or if opts has a Drain, which only Run supports.
func Handler(c jetstream.Consumer, fn func(context.Context, jetstream.Msg) error, opts Options) (jetstream.MessageHandler, error) {
	if opts.Drain != 0 {
		panic(&timeout.ConfigError{Key: "natsworker.Options.Drain", Value: opts.Drain.String(), Accepted: "none for a Handler, or Run"})
	}
	w, err := newWorker(c, fn, opts)
	if err != nil {
		return nil, err
	}
	// It is not known when Consume asked for msg. The sixth of the lease that is not relied upon has to
	// cover the time that the message was on its way.
	return func(msg jetstream.Msg) { w.handle(context.Background(), msg, time.Now()) }, nil
}

// A worker calls a function for the messages of a consumer.
type worker struct {
	Options
	run        []timeout.Option // of each execution
	log        logger
	c          jetstream.Consumer
	info       *jetstream.ConsumerInfo // as of newWorker
	fn         func(context.Context, jetstream.Msg) error
	lease      time.Duration
	maxDeliver int

	*owner // nil in a Handler
}

// defaultAckWait is the server's default.
const defaultAckWait = 30 * time.Second

func newWorker(c jetstream.Consumer, fn func(context.Context, jetstream.Msg) error, opts Options) (*worker, error) {
	if c == nil {
		panic(&timeout.ConfigError{Key: "natsworker consumer", Value: "nil", Accepted: "a consumer"})
	}
	if fn == nil {
		panic(&timeout.ConfigError{Key: "natsworker function", Value: "nil", Accepted: "a function"})
	}
	info := c.CachedInfo()
	if info == nil {
		return nil, fmt.Errorf("natsworker: %w", &timeout.ConfigError{Key: "CachedInfo", Value: "nil", Accepted: "a consumer of js.Consumer or js.CreateOrUpdateConsumer"})
	}
	if p := info.Config.AckPolicy; p != jetstream.AckExplicitPolicy {
		return nil, unfit(info, "AckPolicy", p, jetstream.AckExplicitPolicy.String())
	}
	opts = opts.withDefaults()
	w := &worker{Options: opts, run: opts.execution(info.Name), log: logger{to: opts.Logger}, c: c, info: info, fn: fn, maxDeliver: info.Config.MaxDeliver}
	w.lease = info.Config.AckWait
	if w.lease <= 0 {
		w.lease = defaultAckWait
	}
	for _, d := range info.Config.BackOff { // if there are any, the server ignores AckWait
		w.lease = min(w.lease, d)
	}
	if len(info.Config.BackOff) > 0 {
		w.warn("the consumer has a BackOff: naks are delayed for longer than they say",
			"stream", info.Stream, "consumer", info.Name)
	}
	return w, nil
}

// unfit is the error of a consumer whose settings do not do.
func unfit(info *jetstream.ConsumerInfo, key string, value any, accepted string) error {
	return fmt.Errorf("natsworker: consumer %q: %w", info.Name, &timeout.ConfigError{Key: key, Value: fmt.Sprint(value), Accepted: accepted})
}

func (w *worker) warn(what string, args ...any) {
	w.log.write(func(l *slog.Logger) { l.Warn(what, args...) })
}

// handle calls the function for one message, whose lease has begun, and sends the outcome. The
// function is aborted when ctx ends. If Run's function was abandoned, returned is closed when it returns
// after all; otherwise returned is nil.
func (w *worker) handle(ctx context.Context, msg jetstream.Msg, begun time.Time) (returned <-chan struct{}) {
	work, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	d := w.newDelivery(msg, begun, lose)
	if !d.begins() {
		w.warn("the message arrived too late: it may have been redelivered", d.about()...)
		return nil
	}
	var done chan struct{}
	if w.owner != nil {
		done = make(chan struct{})
	}
	err := timeout.Run(work, func(ctx context.Context) error {
		if done != nil {
			defer close(done)
		}
		d.monitor = heartbeat.FromContext(ctx)
		err := w.fn(ctx, d)
		if err != nil {
			d.said = understand(err)
		}
		return err
	}, w.run...)
	w.conclude(ctx, d, err)
	if stopped, ok := err.(*timeout.Error); ok && stopped.Abandoned {
		return done
	}
	return nil
}

// conclude sends the outcome, and logs it unless the message is done. timeout.Run has already logged a
// stop of the function.
func (w *worker) conclude(ctx context.Context, d *delivery, err error) {
	o, said := outcome{verb: ack}, ""
	if err != nil {
		v := d.verdict(err)
		o, said = w.decide(ctx, err, v, d.meta().NumDelivered), v.text
	}
	if o.verb == nak {
		w.waitForPulls()
	}
	failed := d.conclude(ctx, o)
	switch {
	case errors.Is(failed, ErrLeaseLost):
		w.warn("lease lost: the message may have been redelivered", d.about("error", said)...)
	case errors.Is(failed, jetstream.ErrMsgAlreadyAckd):
		if err != nil {
			w.warn("the function failed after acknowledging the message itself", d.about("error", said)...)
		}
	case failed != nil && o.verb == ack:
		w.warn("ack unconfirmed: the message is done but may be redelivered", d.about("error", failed)...)
	case failed != nil:
		w.warn("outcome unconfirmed: the message may wait for AckWait", d.about("outcome", said, "error", failed)...)
	case o.verb == term:
		w.warn("terminated", d.about("reason", o.reason)...)
	case o.verb == nak:
		w.warn("given back", d.about("delay", o.delay, "error", said)...)
	}
}
