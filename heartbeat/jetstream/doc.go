// Package hbjetstream runs the messages of a NATS JetStream consumer under limits: a message
// is kept for as long as its function makes progress, and given to another worker when it is
// stuck.
//
//	err := hbjetstream.Run(ctx, consumer, 4, func(ctx context.Context, msg jetstream.Msg) error {
//		return compress(ctx, string(msg.Data())) // calls heartbeat.Beat(ctx) after each block
//	}, timeout.Config{Idle: 2 * time.Minute}, hbjetstream.WithConn(nc))
//
// JetStream by itself knows one time, AckWait: a message that is not acknowledged within it is
// delivered again, while the function that has it works on. Short, it makes healthy long work
// run twice; long, it has the messages of a dead worker wait. Here the two questions are two:
//
//   - Whether the worker is alive is AckWait's to find out. It may be seconds, since the server
//     is told that the message is in progress three times as often, whatever the function does.
//   - Whether the work is stuck is the idle limit's. It may be minutes, and a function that has
//     gone without a heartbeat for that long is stopped where it runs.
//
// [Run] takes and handles messages; [Handler] is for those who call Consume themselves.
//
// # Outcomes
//
//	the function                       the server hears
//	returned nil                       ack, and its answer is waited for
//	timed out, first delivery          nak: any worker may have it at once
//	timed out, failed or panicked      nak with a delay, see WithBackoff
//	  and has not returned yet         the delay is at least the grace
//	returned After(d, err)             nak with that delay
//	returned Reject(err)               term, with err as the reason
//	anything but nil, last delivery    term, with "delivery 5 of 5: …" as the reason
//	was aborted, as the worker stops   nak
//	lost its message                   nothing
//
// The last delivery is that of the consumer's MaxDeliver. Beyond it, the server keeps a
// message in the stream and delivers it to nobody; so it does where a worker was killed in the
// last delivery, or lost its message. Every delivery counts towards MaxDeliver, also one that
// a restart of the worker has cut short: leave room for those. Terminated messages are in the
// advisories of the server, under $JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED, with the reason.
//
// # The consumer
//
// It has the AckExplicit policy and no BackOff, which would take the place of AckWait and
// falsify the delays of a nak. AckWait is how long an outage of the network or the server may
// last before work is given up, and how long the messages of a killed worker wait.
// MaxAckPending bounds the messages in work over all workers, those that wait for a delay
// included.
//
// # Effects
//
// A message can be delivered more than once: a worker that was killed may have been done but
// for the ack. And two functions can be at work on one message: one that ignores its context,
// and its successor. So let the effect be one that can be repeated, or fence it: keep beside it
// the stream sequence of the message, and the highest NumDelivered that has begun with it, and
// refuse a change by a delivery with a lower one. Both are in msg.Metadata; NumDelivered is of
// one consumer, and starts over with another.
//
// # Guarantees
//
//  1. A message is kept, by renewals every third of AckWait, until its function has returned or
//     been abandoned, however silent it is. The limits alone decide that it is stuck.
//  2. A function whose message can no longer be kept is stopped, with [ErrLeaseLost] as the
//     cause, when a sixth of AckWait is left since the last renewal. From then on nothing is
//     said about the delivery. A lost connection is noticed by Run, and by a Handler that has
//     [WithConn]; a process that was itself stopped for that long, by both. Only an ack for work
//     that is done may arrive late.
//  3. The server hears the outcome above, once, and nothing after it. With Run or WithConn it is
//     known to have it, or it is logged that it may not.
//  4. Acknowledgements that the function sends through its message count, the first one. After
//     the outcome they are refused with jetstream.ErrMsgAlreadyAckd, or ErrLeaseLost.
//  5. A stalled message is another worker's at the idle limit, and not before.
//  6. Run has no more than n messages at a time, and no more than n functions running, those
//     included that were abandoned.
//  7. When Run has returned, every message that it had is settled or given back.
//  8. Nothing is left behind but the goroutines of abandoned functions.
package hbjetstream
