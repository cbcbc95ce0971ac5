package natsworker

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Options are the settings of [Run] and [Handler]. The zero Options are the defaults.
type Options struct {
	// Limits are the limits of the execution of each message. nil means the process default of
	// package timeout.
	Limits *timeout.Config
	// ObserveOnly stops nothing, and reports what the limits would have stopped.
	ObserveOnly bool
	// Hooks are called for the execution of each message, which is named after the consumer.
	Hooks timeout.Hooks

	// Conn is the connection of the consumer. Renewals and outcomes are then sent as requests, whose
	// answers are waited for. Set it wherever the connection is available.
	//
	// With Conn a lost connection is noticed: a function whose lease can no longer be renewed is
	// stopped, with [ErrLeaseLost] as the cause, before the message is redelivered, and nothing about
	// this delivery is sent when the connection is back. In a [Handler] without it, nats.go keeps what is
	// published while the connection is down and sends it after the reconnect, and the server applies it
	// to the delivery that is then outstanding: a late nak starts a third worker beside the second. [Run]
	// without it probes the connection with c.Info instead, which takes two requests per renewal and the
	// permission to make them.
	Conn *nats.Conn

	// Backoff is the delay before a message that has failed in its first delivery is redelivered. It is
	// twice as long after each delivery that follows, and never more than MaxBackoff. After a timeout in
	// the first delivery, and at shutdown, a message is redelivered at once; [After] sets another delay.
	// 0 means 1 s, and a negative value means no delay.
	Backoff time.Duration
	// MaxBackoff is the longest such delay. 0 means 1 min, and a negative value means no delay.
	MaxBackoff time.Duration

	// Drain is how long functions may go on when the context of [Run] ends, before they are aborted. 0
	// or less means that they are aborted at once. A [Handler] has no Drain, because nothing ends it.
	Drain time.Duration

	// Logger gets every outcome other than a confirmed ack, lost leases, failed pull requests, and what
	// [timeout.WithLogger] logs of an execution. A message waits for it for at most 1 s a record, and
	// while 16 records are stuck, further ones are dropped. nil means no logging.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Backoff = max(cmp.Or(o.Backoff, time.Second), 0)
	o.MaxBackoff = max(cmp.Or(o.MaxBackoff, time.Minute), 0)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// execution returns the options of the execution of a message.
func (o *Options) execution(name string) []timeout.Option {
	opts := []timeout.Option{timeout.WithName(name), timeout.WithRecover(), timeout.WithHooks(o.Hooks), timeout.WithLogger(o.Logger)}
	if o.Limits != nil {
		opts = append(opts, *o.Limits)
	}
	if o.ObserveOnly {
		opts = append(opts, timeout.WithObserveOnly())
	}
	return opts
}

// backoff returns the delay after a message has failed in its n-th delivery.
func (o *Options) backoff(n uint64) time.Duration {
	d := min(o.Backoff, o.MaxBackoff)
	for ; n > 1 && 0 < d && d < o.MaxBackoff; n-- {
		if d > o.MaxBackoff/2 {
			return o.MaxBackoff
		}
		d *= 2
	}
	return d
}
