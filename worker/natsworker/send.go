package natsworker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// send sends an outcome or a renewal until it is confirmed or ctx ends. It returns when the successful
// attempt was made.
//
// A nak is attempted once: if it has arrived and only its answer was lost, a second one would
// apply to the next delivery. If it has not, the message is redelivered after AckWait.
func (w *worker) send(ctx context.Context, msg jetstream.Msg, v verb, delay time.Duration, reason string) (sent time.Time, err error) {
	var unconfirmed error // of the attempt before
	for {
		if err = w.reachable(ctx); err == nil {
			attempt, cancel := context.WithTimeout(ctx, w.attempt())
			sent = time.Now()
			err = w.sendOnce(attempt, msg, v, delay, reason)
			cancel()
			if unconfirmed != nil && errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
				return sent, unconfirmed // it was published before, and nats.go publishes no second one
			}
			unconfirmed = err
			if err == nil || v == nak && !(w.Conn != nil && errors.Is(err, nats.ErrNoResponders)) {
				return sent, err
			}
		}
		if hopeless(err) {
			return sent, err
		}
		select {
		case <-ctx.Done():
			return sent, err
		case <-time.After(w.pause()):
		}
	}
}

// reachable returns nil if the server can be reached, as far as is known. nats.go keeps what is published
// while it cannot, and sends it when it may be too late.
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

// attempt bounds the wait for one answer. Four attempts fit between the time at which a renewal is due and
// the end of sure.
func (w *worker) attempt() time.Duration { return min(w.lease/6, 5*time.Second) }

// pause is the time between two attempts, or two checks of a lost connection.
func (w *worker) pause() time.Duration { return min(w.lease/30, 250*time.Millisecond) }

func hopeless(err error) bool {
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
// the server processes a connection in order. In a Handler without one, nil only means that it was
// published.
func (w *worker) sendOnce(ctx context.Context, msg jetstream.Msg, v verb, delay time.Duration, reason string) error {
	if v == ack {
		return msg.DoubleAck(ctx)
	}
	if w.Conn == nil {
		if err := publish(msg, v, delay, reason); err != nil || w.owner == nil {
			return err
		}
		return w.probe(ctx)
	}
	var body string
	switch {
	case v == inProgress:
		body = "+WPI"
	case v == nak && delay > 0:
		body = fmt.Sprintf(`-NAK {"delay": %d}`, delay.Nanoseconds())
	case v == nak:
		body = "-NAK"
	default:
		body = "+TERM " + reason
	}
	_, err := w.Conn.RequestWithContext(ctx, msg.Reply(), []byte(body))
	return err
}

func publish(msg jetstream.Msg, v verb, delay time.Duration, reason string) error {
	switch {
	case v == inProgress:
		return msg.InProgress()
	case v == nak && delay > 0:
		return msg.NakWithDelay(delay)
	case v == nak:
		return msg.Nak()
	default:
		return msg.TermWithReason(reason)
	}
}
