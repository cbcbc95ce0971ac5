package natsworker

import (
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// An Option is one of [timeout.Run], such as a [timeout.Config] or timeout.WithHooks, or one
// of this package, which timeout.Run itself ignores. Where an option is given twice, the last
// one counts, unless its documentation says otherwise.
//
// Without a Config the process default of package timeout applies. An execution is named after
// the consumer, unless timeout.WithName is given. timeout.WithRecover always applies.
type Option = timeout.Option

// WithConn sends renewals and outcomes as requests on nc, the connection of the consumer, and
// waits for the answers. Give it wherever the connection is at hand.
//
// With it a lost connection is noticed: a function whose lease can no longer be renewed is
// stopped, with [ErrLeaseLost] as the cause, before the message is redelivered, and nothing about
// this delivery is sent when the connection is back. In a [Handler] without it, nats.go keeps
// what is published while the connection is down and sends it after the reconnect, and the
// server applies it to whichever delivery is outstanding then: a late nak starts a third worker
// beside the second. [Run] without it probes the connection with c.Info instead, which needs the
// permission for it, and two requests per renewal.
//
// A nil nc is no connection.
func WithConn(nc *nats.Conn) Option {
	return own(func(s *settings) { s.conn = nc })
}

// WithBackoff sets how long a message that failed waits to be redelivered: first after the first
// delivery, twice as long after each that follows, and never more than most. Without it that is
// 1 s, 2 s, and so on up to 1 min. A negative duration is read as 0, no wait.
//
// It does not apply to a timeout in the first delivery and to messages given back at shutdown,
// which are redelivered at once, nor to [After].
func WithBackoff(first, most time.Duration) Option {
	return own(func(s *settings) { s.first, s.most = max(first, 0), max(most, 0) })
}

// WithDrain lets functions that run when the context of [Run] ends go on for up to d before they
// are aborted. Without it, or if d is not positive, they are aborted at once. [Handler] ignores
// it.
func WithDrain(d time.Duration) Option {
	return own(func(s *settings) { s.drain = d })
}

// WithLogger logs to l what timeout.WithLogger logs, every outcome but a confirmed ack, lost
// leases, and failed pull requests. Without it, or with nil, nothing is logged.
func WithLogger(l *slog.Logger) Option {
	if l == nil {
		l = slog.New(slog.DiscardHandler)
	}
	run := timeout.WithLogger(l)
	return option{run, func(s *settings) { s.log, s.run = l, append(s.run, run) }}
}

// An option of this package is one of timeout.Run too, so that one list can hold both: the
// unexported method of timeout.Option is promoted from the embedded one.
type option struct {
	timeout.Option
	set func(*settings)
}

// own returns an option that has no effect in timeout.Run.
func own(set func(*settings)) Option {
	return option{timeout.WithHooks(timeout.Hooks{}), set}
}

type settings struct {
	conn        *nats.Conn
	first, most time.Duration
	drain       time.Duration
	log         *slog.Logger
	run         []timeout.Option
}

func newSettings(name string, opts []Option) settings {
	s := settings{first: time.Second, most: time.Minute, log: slog.New(slog.DiscardHandler)}
	s.run = append(s.run, timeout.WithName(name))
	for _, o := range opts {
		if ours, ok := o.(option); ok {
			ours.set(&s)
		} else {
			s.run = append(s.run, o) // nil has no effect there
		}
	}
	s.run = append(s.run, timeout.WithRecover())
	return s
}

// backoff returns how long a message waits that failed in its n-th delivery.
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

// warn logs. A handler that panics must not end the process.
func (s *settings) warn(what string, args ...any) {
	defer func() { _ = recover() }()
	s.log.Warn(what, args...)
}
