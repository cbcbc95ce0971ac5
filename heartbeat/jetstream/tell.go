package hbjetstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// tell has the server hear something about a message, and gives the time at which that was
// sent which got through.
//
// What can be said twice without harm is said again until ctx ends. A nak cannot: if the
// first was heard and only its answer was lost, the second would be about the next delivery.
// Then AckWait does what is left to do.
func (w *worker) tell(ctx context.Context, msg jetstream.Msg, v verb, delay time.Duration, reason string) (sent time.Time, err error) {
	for {
		if err = w.reach(ctx); err == nil {
			attempt, cancel := context.WithTimeout(ctx, w.attempt())
			sent = time.Now()
			err = w.send(attempt, msg, v, delay, reason)
			cancel()
			if err == nil || v == nak && !(w.conn != nil && errors.Is(err, nats.ErrNoResponders)) {
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

// reach says whether the server can be reached, as far as that can be known. What is sent
// while it cannot would be kept by nats.go, and sent when it is too late.
func (w *worker) reach(ctx context.Context) error {
	switch {
	case w.conn != nil && w.conn.IsClosed():
		return nats.ErrConnectionClosed
	case w.conn != nil && !w.conn.IsConnected():
		return nats.ErrDisconnected
	case w.conn == nil && w.owner != nil:
		return w.ask(ctx)
	}
	return nil
}

// attempt is how long one answer is waited for: three fit into what is left of the lease
// when a renewal is due.
func (w *worker) attempt() time.Duration { return min(w.lease/6, 5*time.Second) }

// pause is the time between two attempts, and between two looks at a lost connection.
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

// send is one attempt, and nil means that the server has it. Only DoubleAck of nats.go waits
// for the server's answer, but the server answers the others too if they are sent as requests.
// Without a connection to do that on, an answer to something that is sent afterwards will do,
// since the server takes things in order. Where there is not even that, nil means no more than
// that it is on its way.
func (w *worker) send(ctx context.Context, msg jetstream.Msg, v verb, delay time.Duration, reason string) error {
	if v == ack {
		return msg.DoubleAck(ctx)
	}
	if w.conn == nil {
		if err := publish(msg, v, delay, reason); err != nil || w.owner == nil {
			return err
		}
		return w.ask(ctx)
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
	_, err := w.conn.RequestWithContext(ctx, msg.Reply(), []byte(body))
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
