package natsworker

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// Options holds the settings of [Run] and [Handler]. The zero Options means the defaults.
type Options struct {
	// Limits holds the limits of the execution of each message whose subject matches no key of the Policy. The name of
	// the execution is the pattern of the Policy that the subject of the message matches, or else the name of the
	// consumer. nil means the Default of the Policy or, if that is nil too, the process default of package timeout.
	Limits *timeout.Config
	// Policy sets the limits of messages by subject. The keys of its Tools are subjects or patterns of NATS, such as
	// "orders.*.pdf" or "orders.>"; the narrowest matching key applies. Messages that match no key have Limits or, if
	// that is nil, the Default of the Policy. A nil Policy means Limits for all messages. A Policy in use can be
	// replaced. Messages that match a key also read the variables MCP_TIMEOUT and MCP_IDLE_TIMEOUT, which are for MCP
	// servers, unless TotalEnv and IdleEnv are "-".
	Policy *policy.Policy

	// Conn is the connection of the consumer. With Conn, renewals and outcomes are sent as requests, and the worker
	// waits for the answers. Set Conn if the connection is available. With a nil Conn, only acks have an answer;
	// renewals, naks and terms are published without one.
	//
	// With Conn the worker detects a lost connection: a function whose lease can no longer be renewed is stopped, with
	// [lease.ErrLost] as the cause, before the message is redelivered, and nothing about that delivery is sent after a
	// reconnect. In a [Handler] without Conn, nats.go buffers messages that are published while the connection is down
	// and sends them after the reconnect, and the server applies them to the delivery that is then outstanding: a late
	// nak makes it redeliver to a third worker while the second one works. [Run] without Conn probes the connection
	// with c.Info instead, which takes two requests per renewal and the permission to make them.
	Conn *nats.Conn

	// Backoff is the delay before a message that has failed in its first delivery is redelivered. The delay doubles with
	// each further delivery, up to MaxBackoff. After a timeout in the first delivery, and at shutdown, a message is
	// redelivered at once; [After] sets another delay. If the function was abandoned, the delay is at least its grace. 0
	// means 1 s, and a negative value means no delay.
	Backoff time.Duration
	// MaxBackoff is the longest delay of Backoff. 0 means 1 min, and a negative value means no delay.
	MaxBackoff time.Duration

	// Drain is how long functions may continue after the context of [Run] has ended, before they are aborted. 0 or less
	// means that they are aborted at once. [Handler] panics if Drain is not 0, because a handler has no end.
	Drain time.Duration

	// Logger receives records of every outcome other than a confirmed ack or an acknowledgement by the function itself,
	// of lost leases and failed pull requests, and the records of each execution; see [timeout.WithLogger]. A message
	// waits for Logger for at most 1 s per record, and while 16 records are being written, further ones are dropped.
	// nil means no logging.
	Logger *slog.Logger
}

// withDefaults returns o with the defaults of Backoff and MaxBackoff filled in.
func (o Options) withDefaults() Options {
	o.Backoff = max(cmp.Or(o.Backoff, time.Second), 0)
	o.MaxBackoff = max(cmp.Or(o.MaxBackoff, time.Minute), 0)
	return o
}

// backoff returns the delay of the nak after the n-th delivery of a message has failed.
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
