// Package lease runs work that an engine has leased to this worker: a row of a database, a message of a queue, an object
// that one process at a time may have. While the work runs under its limits, a timer renews the lease, and the outcome
// releases it.
//
//	err := lease.Run(ctx, lease.Lease{Duration: 30 * time.Second, Renew: renew, Release: release}, work,
//		timeout.Config{Idle: 2 * time.Minute})
//
// Two questions then have two answers. Is the worker alive? The engine asks, and a timer answers, so Duration may be
// seconds, however long the work takes. Is the work stuck? The idle limit decides, in the process where the work runs.
// A lease that only heartbeats renew answers neither: silent healthy work is taken over, and works on beside its successor.
//
// # Writing Renew and Release
//
//	renew := func(ctx context.Context, s lease.Checkpoint) error { ... }
//
// Both have this form. They write to the engine, and compare what it has with the token, so that the write of a worker that
// was taken over fails. That failure is [ErrLost]. Any other error means that nothing is known, and the write is tried again.
// In SQL:
//
//	update jobs set leased_until = now() + interval '30 s', detail = $3 where id = $1 and token = $2
//
// returns ErrLost if it has changed no row. Release marks the row as done, or makes it free again when Checkpoint.Err is not nil.
// It may be repeated, since an answer can be lost: a row that it had deleted would look like a lease that is lost. An
// engine without a token cannot refuse the write of an earlier holder. There a Release that may have arrived must not be
// repeated, since it would release somebody else's lease: it wraps ErrLost in the error of a write without an answer.
//
// The work fences its effects with the same token, or asks [Check] before each. No clock can do that for it: a process
// may be paused after it has asked and before its write leaves the machine.
//
// # Guarantees
//
//  1. A lease is renewed by a timer, whether or not the work beats, and during a hold of the idle check.
//  2. Renewals end when the work has returned or been abandoned.
//  3. When renewals fail, the work is told its grace before anybody else may begin, and a twentieth of Duration before
//     that, for clocks of different speed. Time is that of this machine's clock, from when the newest successful renewal
//     was sent. Both together count as far as they are shorter than half of Duration.
//  4. The clock is asked before every write. A process that was paused, or whose machine was suspended, for too long
//     sends nothing.
//  5. When a lease is lost, nothing is sent any more: no renewal, no outcome.
//  6. The token goes with every write, and one write is made at a time.
//  7. The newest detail goes with every write, and with the last one after the work has ended: the last of a burst, and
//     that of work that was stopped. Until there is one, the detail of the attempt before goes with it.
//  8. A write that fails is tried again for as long as the lease lasts, unless the error is ErrLost. A release that is
//     given up before, because ctx has ended, is [ErrUnconfirmed].
//  9. Renew and Release delay no stop, whether they block, panic or end their goroutine. They delay a return no longer than
//     the lease lasts, and by 5 s at most once ctx has ended.
//  10. Nothing remains except the goroutine of an abandoned function, and that of a write that does not return.
package lease
