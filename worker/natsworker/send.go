package natsworker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// reachable returns nil unless the server is known to be out of reach. During an outage, nats.go keeps what is
// published and may send it too late.
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

// attempt bounds the wait for one answer.
func (w *worker) attempt() time.Duration { return min(w.lease/6, 5*time.Second) }

func isPermanent(err error) bool {
	for _, e := range []error{nats.ErrConnectionClosed, nats.ErrConnectionDraining, jetstream.ErrMsgAlreadyAckd,
		jetstream.ErrMsgNoReply, jetstream.ErrMsgNotBound} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// sendOnce makes one attempt; nil means that the server has received it. In nats.go only DoubleAck waits
// for the server's answer, but the server answers the others too if they are sent as requests. Without a
// connection to send requests on, Run waits for the answer to a probe that it sends afterwards, because
// the server processes a connection in order. In a Handler without a connection, nil only means that it was
// published.
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
