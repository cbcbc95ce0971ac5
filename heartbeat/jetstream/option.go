package hbjetstream

import (
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// An Option is one of [timeout.Run], such as a [timeout.Config] or timeout.WithHooks, or one
// of this package, which timeout.Run ignores. Where an option is given twice, the last one
// counts, unless it says otherwise.
//
// Without a Config the process default of package timeout applies. Executions have the name
// of the consumer unless timeout.WithName gives another, and a panic of the function is an
// error, as with timeout.WithRecover.
type Option = timeout.Option

// WithConn has everything about a delivery sent as a request on nc, the connection of the
// consumer, whose answer is waited for. Use it wherever the connection is at hand.
//
// With it a lost connection is noticed: a function whose message can no longer be kept is
// stopped before the server gives the message to another worker, with [ErrLeaseLost] as the
// cause, and nothing is said about this delivery when the connection is back. Without it,
// what is published while the connection is down is delivered when it is up again, and the
// server takes it for a word about whichever delivery is out by then: a late Nak has a third
// worker start beside the second.
//
// A nil nc is no connection.
func WithConn(nc *nats.Conn) Option {
	return own(func(s *settings) { s.conn = nc })
}

// WithBackoff sets how long a message that failed waits for its next delivery: first after
// the first delivery, twice as long after each that follows, and at most most. Without it
// that is 1 s, 2 s, and so on up to 1 min. A negative duration is read as 0, no wait.
//
// It does not apply to a timeout of the first delivery, to messages given back at shutdown,
// which may be delivered again at once, and to [After].
func WithBackoff(first, most time.Duration) Option {
	return own(func(s *settings) { s.first, s.most = max(first, 0), max(most, 0) })
}

// WithDrain has [Run] let the functions that run when its context ends go on for up to d
// before they are aborted. Without it, or where d is not positive, they are aborted at once.
// [Handler] ignores it.
func WithDrain(d time.Duration) Option {
	return own(func(s *settings) { s.drain = d })
}

// WithLogger logs to l what timeout.WithLogger logs, what became of messages that were not
// done, and outcomes of which it is not known whether the server has them. Without it, or
// with nil, nothing is logged. A message that is done is not worth a line.
func WithLogger(l *slog.Logger) Option {
	return option{timeout.WithLogger(l), func(s *settings) {
		if l == nil {
			l = slog.New(slog.DiscardHandler)
		}
		s.log = l
	}}
}

// An option of ours is one of timeout.Run too, so that one list can hold both: the method
// that closes timeout.Option comes with the embedded one.
type option struct {
	timeout.Option
	set func(*settings)
}

// own gives an option that means nothing to timeout.Run.
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
		}
		s.run = append(s.run, o) // nil and what is only ours do nothing there
	}
	s.run = append(s.run, timeout.WithRecover())
	return s
}

// backoff is how long a message waits that failed in its n-th delivery.
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

func (s *settings) warn(what string, d *delivery, args ...any) {
	meta := d.meta()
	s.log.Warn(what, append([]any{
		"stream", meta.Stream, "consumer", meta.Consumer, "subject", d.Subject(),
		"sequence", meta.Sequence.Stream, "delivery", meta.NumDelivered}, args...)...)
}
