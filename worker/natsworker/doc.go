// Package natsworker runs the messages of a NATS JetStream consumer under limits: a message
// is kept for as long as its function makes progress, and redelivered to another worker when
// the function is stuck.
//
//	err := natsworker.Run(ctx, consumer, 4, func(ctx context.Context, msg jetstream.Msg) error {
//		return compress(ctx, string(msg.Data())) // calls heartbeat.Beat(ctx) after each block
//	}, natsworker.WithOptions(timeout.Config{Idle: 2 * time.Minute}), natsworker.WithConn(nc))
//
// JetStream by itself has one limit, AckWait: a message that is not acknowledged within it is
// delivered again, while the function that has it works on. A short AckWait makes healthy long
// work run twice; a long one makes the messages of a dead worker wait. Here two limits answer
// two questions:
//
//   - AckWait finds out whether the worker is alive. It may be far shorter than the work, since
//     renewals are sent six times as often, whatever the function does.
//   - The idle limit finds out whether the work is stuck. It may be minutes. A function that
//     has gone without a heartbeat for that long is stopped where it runs.
//
// [Run] pulls and handles messages; [Handler] is for those who call Consume themselves.
//
// # Outcomes
//
//	the function                       is sent to the server
//	returned nil                       ack, and its answer is waited for
//	timed out, first delivery          nak: redelivery at once
//	timed out again, was aborted,
//	  failed or panicked               nak with a delay, see WithBackoff
//	  and has not returned yet         the delay is at least the grace
//	returned After(d, err)             nak with that delay
//	returned Reject(err)               term, with err as the reason
//	anything but nil, last delivery    term, with "delivery 5 of 5: …" as the reason
//	was aborted, since Run ends        nak
//	lost its lease                     nothing
//
// The last delivery is that of the consumer's MaxDeliver. After it the server keeps a message in
// the stream and delivers it no more. That is also how a message ends whose worker was killed,
// or lost its lease, in the last delivery. Every delivery counts towards MaxDeliver, including
// those that a restart of the worker has cut short: leave room for them. Terminations are
// published by the server, with the reason, under
// $JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED. Servers before 2.10.4 ignore a term with a reason,
// and deliver the message again.
//
// # The consumer
//
// It needs the AckExplicit policy, and should have no BackOff, which replaces AckWait and
// falsifies the delays of naks. MaxAckPending bounds the messages in progress over all workers, including those that wait for
// the delay of a nak.
//
// AckWait is how long the messages of a killed worker wait. It also decides how long an outage of
// the network or of the server may last that costs no work, whenever it begins:
//
//	outage + reconnect < 3/5 AckWait
//
// where reconnect is how long nats.go may take to find the server back: nats.ReconnectWait, 2 s by
// default, and its jitter, 0.1 s. So 30 s of AckWait outlast an outage of 15 s, and one of 60 s
// takes 104 s. A renewal is relied upon for five sixths of AckWait. When the outage begins, the
// last one may be a sixth old, and the rest is for the next to be repeated and answered. After a
// longer outage some functions have been stopped, those whose last renewal was the oldest, and
// their messages are done again.
//
// Do not set less than 6 s. A server that is started again has the time of a renewal in whole
// seconds only, and redelivers up to a second early. The sixth of AckWait that is not relied upon
// covers that second from 6 s on; with less, two functions can be at work on a message then.
//
// # Effects
//
// A message can be delivered more than once, and two functions can be at work on it at a time: a
// worker was killed between the effect and the ack, a function ignores its context, a server was
// killed. So let each message be completed once, under an id that its publisher gives it with
// [jetstream.WithMsgID], in the store that has the effect: the first to complete it wins, and the
// others find it done. In a database that is an insert into a table with a unique id, in the
// transaction of the effect. Where the effect is a value in a key-value bucket:
//
//	id := msg.Headers().Get(jetstream.MsgIDHeader)
//	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
//	defer cancel()
//	_, err := bucket.Create(ctx, id, result)
//	if errors.Is(err, jetstream.ErrKeyExists) {
//		return nil // done before
//	}
//	return err
//
// The timeout is for an answer that is lost with the server: ctx itself has no deadline but that of
// the total limit. Keep the ids for as long as a message may be delivered again.
//
// The stream sequence and NumDelivered, both in msg.Metadata, are no fence. A server writes the
// state of a consumer after it has delivered, up to ten times a second. One that was killed
// delivers messages again that are being worked on, with the same NumDelivered, and confirms the
// renewals of both. What a single server has stored in streams and buckets survives that, but
// not a loss of power, unless it has sync_interval: always: by default it syncs every 2 minutes.
//
// # Guarantees
//
//  1. A message is kept, by renewals every sixth of AckWait, until its function has returned or
//     been abandoned, however silent it is. Only the limits decide that it is stuck: without an idle
//     limit, or with timeout.WithObserveOnly, a message waits for its function.
//  2. A function whose lease can no longer be renewed is stopped, with [ErrLeaseLost] as the
//     cause, when five sixths of AckWait have passed since the last renewal was sent; before the
//     first, since Run has asked for the message, or a Handler was called. From then on nothing
//     is sent about the delivery. A lost connection is noticed by Run, and by a Handler with
//     [WithConn]; a process that was suspended for that long, by both. Only the ack of finished
//     work may arrive late. Run does not begin a message that arrives later than that.
//  3. The outcome above is sent, once, and nothing after it. With Run or WithConn it is confirmed
//     by the server, or logged as unconfirmed.
//  4. Of the acknowledgements that the function itself sends through its message, the first
//     counts. After the outcome they return jetstream.ErrMsgAlreadyAckd, or ErrLeaseLost. While the
//     connection is known to be lost, all but acks fail, and the message is not settled.
//  5. A stalled message is redelivered at the idle limit, and not before.
//  6. Run has no more than n messages at a time, and no more than n functions running, including
//     those that were abandoned.
//  7. When Run has returned, every message that it had is settled or was given back. Where the
//     server could not be reached, it is redelivered after AckWait.
//  8. Nothing is left but the goroutines of abandoned functions.
package natsworker
