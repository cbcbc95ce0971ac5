package natsworker

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// reachable returns an error if the server is known to be unreachable, because nats.go would buffer a message that is
// published then, and send it too late. In a Handler without Conn it returns nil.
func (w *worker) reachable(ctx context.Context) error {
	switch {
	case w.Conn != nil && w.Conn.IsClosed():
		return nats.ErrConnectionClosed
	case w.Conn != nil && !w.Conn.IsConnected():
		return nats.ErrDisconnected
	case w.Conn == nil && w.owner != nil:
		return w.probe(ctx)
	}
	return nil
}

// isPermanent reports whether no further attempt to send or to pull can succeed after err.
func isPermanent(err error) bool {
	for _, e := range []error{nats.ErrConnectionClosed, nats.ErrConnectionDraining, jetstream.ErrMsgAlreadyAckd,
		jetstream.ErrMsgNoReply, jetstream.ErrMsgNotBound} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// sendOnce makes one attempt to send o. It returns nil if the server has received o or, in a Handler without Conn, if o
// was published. Of the acknowledgements in nats.go, only DoubleAck waits for the server's answer, so with Conn the
// others are sent as requests, which the server answers too. In Run without Conn, sendOnce waits for the answer to a
// probe after o, because the server processes the messages of a connection in order.
func (w *worker) sendOnce(ctx context.Context, msg jetstream.Msg, o outcome) error {
	if o.verb == ack {
		return msg.DoubleAck(ctx)
	}
	if w.Conn == nil {
		if err := publish(msg, o); err != nil || w.owner == nil {
			return err
		}
		return w.probe(ctx)
	}
	var body string
	switch {
	case o.verb == inProgress:
		body = "+WPI"
	case o.verb == nak && o.delay > 0:
		body = fmt.Sprintf(`-NAK {"delay": %d}`, o.delay.Nanoseconds())
	case o.verb == nak:
		body = "-NAK"
	default:
		body = "+TERM " + o.reason
	}
	_, err := w.Conn.RequestWithContext(ctx, msg.Reply(), []byte(body))
	return err
}

// publish sends o without waiting for an answer.
func publish(msg jetstream.Msg, o outcome) error {
	switch {
	case o.verb == inProgress:
		return msg.InProgress()
	case o.verb == nak && o.delay > 0:
		return msg.NakWithDelay(o.delay)
	case o.verb == nak:
		return msg.Nak()
	default:
		return msg.TermWithReason(o.reason)
	}
}
