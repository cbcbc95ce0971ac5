package natsworker

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// An Option changes how [Handler] and [Run] work on messages. Where an option is given twice, the
// last one counts, unless its documentation says otherwise. A nil Option has no effect.
type Option interface{ apply(*settings) }

type optionFunc func(*settings)

func (f optionFunc) apply(s *settings) { f(s) }

// WithOptions gives options of package timeout to the execution of each message: its limits, as a
// [timeout.Config], and others such as [timeout.WithHooks]. If WithOptions is given more than once,
// all of the options apply.
//
// Without a Config the limits are the process default of package timeout. An execution is named
// after the consumer, unless [timeout.WithName] is given. [timeout.WithRecover] always applies.
func WithOptions(opts ...timeout.Option) Option {
	return optionFunc(func(s *settings) { s.run = append(s.run, opts...) })
}

// WithConn sends renewals and outcomes as requests on nc, which must be the connection of the
// consumer, and waits for the answers. Use it wherever the connection is available.
//
// With WithConn a lost connection is noticed: a function whose lease can no longer be renewed is
// stopped, with [ErrLeaseLost] as the cause, before the message is redelivered, and nothing about
// this delivery is sent when the connection is back. In a [Handler] without WithConn, nats.go keeps
// what is published while the connection is down and sends it after the reconnect, and the server
// applies it to the delivery that is then outstanding: a late nak starts a third worker beside the
// second. [Run] without WithConn probes the connection with c.Info instead, which takes two
// requests per renewal and the permission to make them.
//
// A nil nc has no effect.
func WithConn(nc *nats.Conn) Option {
	return optionFunc(func(s *settings) { s.conn = nc })
}

// WithBackoff sets the delay before a failed message is redelivered: first after the first
// delivery, twice as long after each that follows, and never more than most. A negative first or
// most means no delay.
//
// After a timeout in the first delivery, and at shutdown, a message is redelivered at once. [After]
// sets another delay.
//
// For first, 0 means 1 s; for most, 0 means 1 min.
func WithBackoff(first, most time.Duration) Option {
	return optionFunc(func(s *settings) {
		s.first, s.most = max(cmp.Or(first, defaultFirst), 0), max(cmp.Or(most, defaultMost), 0)
	})
}

const (
	defaultFirst = time.Second
	defaultMost  = time.Minute
)

// WithDrain sets how long functions may go on when the context of [Run] ends, before they are
// aborted. 0 or less means that they are aborted at once, as without this option. [Handler] panics
// if it is given this option, because nothing ends a handler.
func WithDrain(d time.Duration) Option {
	return optionFunc(func(s *settings) { s.drain, s.drains = d, true })
}

// WithLogger logs to l every outcome other than a confirmed ack, lost leases, failed pull
// requests, and what [timeout.WithLogger] logs of an execution. A message waits for l for at most 1 s a
// record, and while 16 records are stuck, further ones are dropped. Without it, or with nil, nothing is
// logged.
func WithLogger(l *slog.Logger) Option {
	if l == nil {
		l = slog.New(slog.DiscardHandler)
	}
	return optionFunc(func(s *settings) { s.log, s.run = &logger{to: l}, append(s.run, timeout.WithLogger(l)) })
}

type settings struct {
	conn        *nats.Conn
	first, most time.Duration
	drain       time.Duration
	drains      bool // WithDrain was given
	log         *logger
	run         []timeout.Option
}

func newSettings(name string, opts []Option) settings {
	s := settings{first: defaultFirst, most: defaultMost, log: &logger{to: slog.New(slog.DiscardHandler)}}
	s.run = append(s.run, timeout.WithName(name))
	for _, o := range opts {
		if o != nil {
			o.apply(&s)
		}
	}
	s.run = append(s.run, timeout.WithRecover())
	return s
}

// backoff returns the delay after a message has failed in its n-th delivery.
func (s *settings) backoff(n uint64) time.Duration {
	d := min(s.first, s.most)
	for ; n > 1 && 0 < d && d < s.most; n-- {
		if d > s.most/2 {
			return s.most
		}
		d *= 2
	}
	return d
}

func (s *settings) warn(what string, args ...any) {
	s.log.write(func(l *slog.Logger) { l.Warn(what, args...) })
}
