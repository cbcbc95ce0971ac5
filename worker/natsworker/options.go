package natsworker

import (
	"cmp"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// Options are the settings of [Run] and [Handler]. The zero Options are the defaults.
type Options struct {
	// Limits are the limits of the execution of each message, which is named after the pattern of the Policy that its
	// subject matches, or else after the consumer; [timeout.Watch] sees it. nil means the process default of package
	// timeout.
	Limits *timeout.Config
	// Policy sets the limits of messages by subject. The keys of its Tools are subjects or patterns of NATS, such as
	// "orders.*.pdf" or "orders.>"; of two that match, the narrower counts. Messages that no key matches have Limits
	// or, if that is nil, the policy's Default. nil means
	// Limits for all messages. A policy in use can be replaced. The variables MCP_TIMEOUT and MCP_IDLE_TIMEOUT, which are for MCP servers, are read
	// unless TotalEnv and IdleEnv are "-".
	Policy *policy.Policy

	// Conn is the connection of the consumer. Renewals and outcomes are then sent as requests, whose
	// answers are waited for. Set it wherever the connection is available; nil means that they are published only.
	//
	// With Conn a lost connection is noticed: a function whose lease can no longer be renewed is
	// stopped, with [lease.ErrLost] as the cause, before the message is redelivered, and nothing about
	// this delivery is sent when the connection is back. In a [Handler] without Conn, nats.go keeps what is
	// published while the connection is down and sends it after the reconnect, and the server applies it
	// to the delivery that is then outstanding: a late nak starts a third worker beside the second. [Run]
	// without Conn probes the connection with c.Info instead, which takes two requests per renewal and the
	// permission to make them.
	Conn *nats.Conn

	// Backoff is the delay before a message that has failed in its first delivery is redelivered. It is
	// twice as long after each delivery that follows, and never more than MaxBackoff. After a timeout in
	// the first delivery, and at shutdown, a message is redelivered at once; [After] sets another delay.
	// 0 means 1 s, and a negative value means no delay.
	Backoff time.Duration
	// MaxBackoff bounds the delay of Backoff. 0 means 1 min, and a negative value means no delay.
	MaxBackoff time.Duration

	// Drain is how long functions may go on when the context of [Run] ends, before they are aborted. 0
	// or less means that they are aborted at once. A [Handler] has no Drain, because nothing ends it.
	Drain time.Duration

	// Logger gets every outcome other than a confirmed ack, lost leases, failed pull requests, and what
	// [timeout.WithLogger] logs of an execution. A message waits for Logger for at most 1 s a record, and
	// while 16 records are stuck, further ones are dropped. nil means no logging.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Backoff = max(cmp.Or(o.Backoff, time.Second), 0)
	o.MaxBackoff = max(cmp.Or(o.MaxBackoff, time.Minute), 0)
	return o
}

// options returns the options of the execution of a message.
func (w *worker) options(d *delivery) []timeout.Option {
	name, opts := w.named(d.Subject())
	opts = append(opts, timeout.WithName(name))
	if w.Logger != nil {
		opts = append(opts, timeout.WithLogger(slog.New(deliveryHandler{w.Logger.Handler(), d})))
	}
	return opts
}

// named returns the name of the execution of a message, and its limits.
func (w *worker) named(subject string) (name string, opts []timeout.Option) {
	name = w.info.Name
	if p := w.Policy.Current(); w.Policy != nil {
		best := ""
		for pattern := range p.Tools {
			if matches(pattern, subject) && (best == "" || narrower(pattern, best)) {
				best = pattern
			}
		}
		if best != "" {
			return best, p.For(best, 0)
		}
	}
	p := w.Policy.Current()
	if limits := cmp.Or(w.Limits, p.Default); limits != nil {
		opts = append(opts, *limits)
	}
	if p.ObserveOnly {
		opts = append(opts, timeout.WithObserveOnly())
	}
	return name, opts
}

// matches reports whether a subject matches a pattern of NATS: * is any token, and > at the end is one or more tokens.
func matches(pattern, subject string) bool {
	for {
		p, restOfPattern, more := strings.Cut(pattern, ".")
		s, rest, tokens := strings.Cut(subject, ".")
		switch {
		case p == ">" && !more:
			return true
		case p != "*" && p != s || more != tokens:
			return false
		case !more:
			return true
		}
		pattern, subject = restOfPattern, rest
	}
}

// narrower reports whether a pattern takes precedence over another that matches the same subject: its first token that
// differs is a literal, or is * while the other's is >.
func narrower(a, b string) bool {
	rank := func(token string) int { return strings.Index("*>", token) + 1 }
	for a != b {
		var x, y string
		x, a, _ = strings.Cut(a, ".")
		y, b, _ = strings.Cut(b, ".")
		if x != y {
			return rank(x) < rank(y)
		}
	}
	return false
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
