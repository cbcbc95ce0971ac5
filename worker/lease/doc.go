// Package lease runs work that an engine has leased to this worker: a row of a database, a message of a queue, or
// another object that one process at a time may hold. While the work runs under its limits, a timer renews the lease.
// The outcome releases it.
//
//	err := lease.Run(ctx, lease.Lease{Duration: 30 * time.Second, Renew: renew, Release: release}, work,
//		timeout.Config{Idle: 2 * time.Minute})
//
// This separates two questions. Is the worker alive? The timer's renewals show that to the engine, so Duration may be
// seconds, however long the work takes. Is the work stuck? The idle limit decides that, in the process where the work
// runs. A lease that only heartbeats renew answers neither: another worker takes over healthy work that is silent,
// and both then work at the same time.
//
// # Writing Renew and Release
//
//	renew := func(ctx context.Context, s lease.Checkpoint) error { ... }
//
// Both have this form. They write to the engine, on condition that the engine still holds the token, so that the
// write of a worker fails after another worker has taken over. They then return [ErrLost]. After any other error the
// state at the engine is unknown, and the write is tried again. In SQL:
//
//	update jobs set leased_until = now() + interval '30 s', detail = $3 where id = $1 and token = $2
//
// returns ErrLost if it has changed no row. Release marks the row as done, or makes it free again if Checkpoint.Err
// is not nil. Release must be repeatable, because an answer can be lost: if it deleted the row, its repetition would
// find a lost lease. An engine without a token cannot refuse the write of an earlier holder. With such an engine, a
// Release that may have arrived must not be repeated, since it could release another worker's lease: if a write has
// no answer, Release returns an error that wraps ErrLost.
//
// The work fences its effects with the same token, or calls [Check] before each effect. No clock can replace the
// token: a process may be paused after the call of Check and before its write leaves the machine.
//
// # Guarantees
//
//  1. A timer renews the lease, whether or not the work beats, and during a hold of the idle check.
//  2. Renewals end when the work has returned or been abandoned.
//  3. When renewals fail, the work is stopped early enough: its grace before another worker may begin, and a
//     twentieth of Duration before that, for clocks of different speed. Time is that of this machine's clock, from when
//     the newest successful renewal was sent. Both together are limited to half of Duration.
//  4. The clock is read before every write. A process that was paused, or whose machine was suspended, for too long
//     sends nothing.
//  5. When a lease is lost, nothing is sent any more: no renewal, no outcome.
//  6. The token goes with every write, and one write is made at a time.
//  7. The newest detail goes with every write, and with the last one after the work has ended: the last of a burst, and
//     that of work that was stopped. Before the first detail, the detail of the previous attempt goes with it.
//  8. A write that fails is tried again for as long as the lease lasts, unless the error is ErrLost. If Run gives up a
//     release earlier, because ctx has ended, the error is [ErrUnconfirmed].
//  9. Renew and Release delay no stop, whether they block, panic or end their goroutine. They delay a return no longer
//     than the lease lasts, and by 5 s at most once ctx has ended.
//  10. Nothing remains except the goroutine of an abandoned function, and that of a write that does not return.
package lease
