// Package natsworker handles the messages of a NATS JetStream consumer under limits. A worker keeps a
// message for as long as the function that handles it makes progress. When the function is stuck, the
// message is redelivered to another worker.
//
//	err := natsworker.Run(ctx, consumer, 4, func(ctx context.Context, msg jetstream.Msg) error {
//		return compress(ctx, string(msg.Data())) // calls heartbeat.Beat(ctx) after each block
//	}, natsworker.Options{Limits: &timeout.Config{Idle: 2 * time.Minute}, Conn: nc})
//
// JetStream itself has one limit, AckWait: a message that is not acknowledged within it is delivered
// again, while the function that has it keeps running. A short AckWait makes healthy long work run twice;
// a long one makes the messages of a dead worker wait. With this package two limits answer two questions:
//
//   - AckWait detects a dead worker. It may be far shorter than the work, because
//     renewals are sent six times as often, whatever the function does.
//   - The idle limit detects stuck work. It may be minutes. A function that
//     has had no heartbeat for that long is stopped where it runs.
//
// [Run] pulls and handles messages; [Handler] is for programs that call Consume themselves.
//
// # Outcomes
//
//	the function                       the server gets
//	returned nil                       ack, which it must confirm
//	timed out, first delivery          nak: redelivery at once
//	timed out again, was aborted,
//	  failed or panicked               nak with a delay, the Backoff
//	  and still runs                   the same, with a delay of at least the grace
//	returned After(d, err)             nak with that delay
//	returned Reject(err)               term, with err as the reason
//	anything but nil, last delivery    term, with "delivery 5 of 5: …" as the reason
//	was aborted because Run ends       nak
//	lost its lease                     nothing
//
// The consumer's MaxDeliver sets which delivery is the last. After the last delivery, the server keeps
// the message in the stream and does not deliver it again. The same happens to a message whose worker
// was killed, or lost its lease, during the last delivery. Every delivery counts towards MaxDeliver,
// including one that a restart of the worker cut short, so choose a MaxDeliver that allows for
// restarts. The server publishes terminations, with the reason, under
// $JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED. Servers before 2.10.4 ignore a term with a reason, and
// deliver the message again.
//
// # The consumer
//
// The consumer needs the AckExplicit policy. It should have no BackOff, which replaces AckWait and
// lengthens the delays of naks. MaxAckPending bounds the messages in progress over all workers, including
// those that wait for the delay of a nak.
//
// The messages of a killed worker wait for AckWait. AckWait also determines the longest outage of the
// network or the server that costs no work, whenever the outage begins:
//
//	outage + reconnect < 3/5 AckWait            if the grace is at most a tenth of AckWait
//	outage + reconnect < 7/10 AckWait - grace   if it is longer
//
// where reconnect is the time that nats.go may take to reconnect: nats.ReconnectWait, 2 s by default, and its jitter,
// 0.1 s. With the default grace of 7 s an AckWait of 30 s outlasts an outage of 11 s. A longer outage stops the
// functions whose last renewal is the oldest, and their messages are handled again.
//
// A server that is restarted forgets when it delivered a message that was not renewed, and assumes that it was
// delivered when it was published. So a message that was published longer ago than a sixth of AckWait is renewed before
// its function begins. If that fails, the function is not called, and the server redelivers the message, at once or
// after AckWait.
//
// A renewal that nats.go has buffered while the connection was lost, before it noticed, is sent when the connection is
// back, and keeps the delivery that is then outstanding for one AckWait. Connect with nats.ReconnectBufSize(-1) if the
// worker alone uses the connection.
//
// Do not set AckWait to less than 6 s. A restarted server knows the time of a renewal only in whole
// seconds, and redelivers up to a second early. The remaining sixth of AckWait covers that second from 6 s
// on. With a shorter AckWait, two functions can work on the same message.
//
// # Effects
//
// A message can be delivered more than once, and two functions can work on it at a time: if a worker is
// killed between the effect and the ack, a function ignores its context, a nak is on its way for longer
// than the lease, or a server is killed. So complete each message once, under an id that its publisher
// sets with [jetstream.WithMsgID], in the store that has the effect: the first to complete it wins, and
// the others find it done. In a database, insert the id into a table where it is unique, in the
// transaction of the effect. The example "Once" of [Run] creates the value of a key-value bucket, with a
// timeout, because the answer may be lost with the server, and ctx has no deadline other than the total
// limit. Keep the ids for as long as a message may be delivered again.
//
// Do not fence by the stream sequence and NumDelivered of msg.Metadata. A server writes the state of a
// consumer after it has delivered, up to ten times a second. A server that was killed redelivers messages
// that are in progress, with the same NumDelivered, and confirms the renewals of both deliveries. The
// contents of streams and buckets on a single server survive a kill. They survive a loss of power only
// with sync_interval: always, because by default the server syncs every 2 minutes.
//
// # Guarantees
//
//  1. Renewals every sixth of AckWait keep a message until its function has returned or been
//     abandoned, however silent the function is. Only the limits decide that a function is stuck:
//     without an idle limit, or with ObserveOnly, a message waits for it.
//  2. A function whose lease can no longer be renewed is stopped, with [lease.ErrLost] as the cause, early enough
//     to return within its grace before the message is redelivered: see package lease. Before the first
//     renewal, the lease begins when Run asks for the message, or the Handler is called. From then
//     on nothing is sent about the delivery. Run, and a Handler with a Conn, notice a lost
//     connection; both notice that the process was suspended for that long. Only the ack of finished
//     work may arrive late. Run does not begin to handle a message that arrives after that time.
//  3. The outcome above is sent once, and nothing after it. With Run or a Conn an outcome that the
//     server does not confirm is logged as unconfirmed.
//  4. If the function acknowledges its message itself, the first acknowledgement counts. Once the
//     outcome is on its way, its acknowledgements return jetstream.ErrMsgAlreadyAckd or [lease.ErrLost].
//     While the connection is known to be lost, all but acks fail, and none of them is the outcome.
//  5. A stalled message is redelivered at the idle limit, and not before.
//  6. Run has at most n messages at a time, and at most n functions running, including abandoned
//     ones.
//  7. Before Run returns, it has sent the outcome of every message or given the message back.
//     If the server could not be reached, the message is redelivered after AckWait.
//  8. Nothing remains except the goroutines of abandoned functions.
package natsworker
