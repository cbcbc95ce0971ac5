package hbjetstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Handler gives a handler for c.Consume, whose options must have
// [jetstream.PullMaxMessages](1), that calls fn for each message under the limits of opts.
// fn's context carries the heartbeat, and calling InProgress on the message is one.
//
// Until fn has returned or been abandoned, the message is kept: the server is told that it
// is in progress every third of the consumer's AckWait, or of its shortest BackOff. The
// limits alone decide that fn is stuck. What becomes of the message then is in the table
// that opens this package. An acknowledgement that fn itself sends through the message
// decides instead; after that, what fn returns is only logged.
//
// The handler returns when the server has the outcome, or when it is known that it cannot be
// told; it is safe for concurrent use. To work on n messages at a time, call c.Consume n
// times. The settings of the consumer are those that c knows when Handler is called.
//
// Prefer [Run] where messages may take longer than AckWait. Once the connection has been
// lost, Consume asks for a message while another is being worked on, and goes on doing so
// whatever PullMaxMessages says; the one that waits is delivered a second time after AckWait.
//
// Handler panics if c or fn is nil, or if c does not have the AckExplicit policy: under the
// others an outcome is lost, or is that of other messages too.
func Handler(c jetstream.Consumer, fn func(context.Context, jetstream.Msg) error, opts ...Option) jetstream.MessageHandler {
	w, err := newWorker(c, fn, opts)
	if err != nil {
		panic(err.Error())
	}
	return func(msg jetstream.Msg) { w.handle(context.Background(), msg) }
}

// A worker is a function on the messages of a consumer.
type worker struct {
	settings
	c          jetstream.Consumer
	info       *jetstream.ConsumerInfo // as it was when the worker was made
	fn         func(context.Context, jetstream.Msg) error
	lease      time.Duration
	maxDeliver int

	*owner // of Run
}

// defaultAckWait is the server's.
const defaultAckWait = 30 * time.Second

func newWorker(c jetstream.Consumer, fn func(context.Context, jetstream.Msg) error, opts []Option) (*worker, error) {
	if c == nil {
		panic("hbjetstream: nil Consumer")
	}
	if fn == nil {
		panic("hbjetstream: nil function")
	}
	info := c.CachedInfo()
	if info == nil {
		return nil, errors.New("hbjetstream: the consumer has no settings: want one of js.Consumer or js.CreateOrUpdateConsumer")
	}
	if p := info.Config.AckPolicy; p != jetstream.AckExplicitPolicy {
		return nil, fmt.Errorf("hbjetstream: AckPolicy of consumer %q is %v: want %v", info.Name, p, jetstream.AckExplicitPolicy)
	}
	w := &worker{settings: newSettings(info.Name, opts), c: c, info: info, fn: fn, maxDeliver: info.Config.MaxDeliver}
	w.lease = info.Config.AckWait
	if w.lease <= 0 {
		w.lease = defaultAckWait
	}
	for _, d := range info.Config.BackOff { // AckWait is not looked at where there are any
		w.lease = min(w.lease, d)
	}
	if len(info.Config.BackOff) > 0 {
		w.log.Warn("with a BackOff, the server redelivers messages that failed later than they were to be",
			"stream", info.Stream, "consumer", info.Name)
	}
	return w, nil
}

// handle runs the function on one message and has the server know the outcome. The work ends
// with ctx. Where the function was abandoned, and this is for Run, returned is closed when it
// does return.
func (w *worker) handle(ctx context.Context, msg jetstream.Msg) (returned <-chan struct{}) {
	work, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	d := w.deliver(msg, lose)
	var done chan struct{}
	if w.owner != nil {
		done = make(chan struct{})
	}
	err := timeout.Run(work, func(ctx context.Context) error {
		if done != nil {
			defer close(done)
		}
		d.monitor = heartbeat.FromContext(ctx)
		return w.fn(ctx, d)
	}, w.run...)
	w.conclude(ctx, d, err)
	if stopped, ok := err.(*timeout.Error); ok && stopped.Abandoned {
		return done
	}
	return nil
}

// conclude has the server know the outcome, and the log what became of the message where
// that is not simply done. What stopped the function is logged by timeout.Run.
func (w *worker) conclude(ctx context.Context, d *delivery, err error) {
	o := outcome{verb: ack}
	if err != nil {
		o = w.judge(ctx, err, d.meta().NumDelivered)
	}
	if o.verb == nak {
		w.hush()
	}
	failed := d.settle(ctx, o)
	switch {
	case errors.Is(failed, ErrLeaseLost):
		w.warn("the message was lost: the server may have given it to another worker", d, "error", text(err))
	case errors.Is(failed, jetstream.ErrMsgAlreadyAckd):
		if err != nil {
			w.warn("the function failed after it had settled its message itself", d, "error", text(err))
		}
	case failed != nil && o.verb == ack:
		w.warn("done, but the server may not know: the message may be delivered again", d, "error", failed)
	case failed != nil:
		w.warn("the server may not know the outcome: the message waits for AckWait", d, "outcome", text(err), "error", failed)
	case o.verb == term:
		w.warn("terminated", d, "reason", o.reason)
	case o.verb == nak:
		w.warn("given back", d, "delay", o.delay, "error", text(err))
	}
}
