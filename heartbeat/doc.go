// Package heartbeat says "still making progress" to whoever supervises the work.
//
// A tool beats through its context, and does not need to know who listens, or
// whether anybody does:
//
//	for _, file := range files {
//		process(file)
//		heartbeat.Beat(ctx)
//	}
//
// Package timeout supervises: it cancels the context once it has gone without a
// beat for the idle limit. Outside such an execution, under a plain context in a
// command-line tool or a test, a beat does nothing, so the same code runs
// unchanged.
//
// Where beating by hand is awkward, [Reader] and [Writer] beat per transfer,
// [Keep] beats on a timer around a call that cannot, and [Hold] suspends the idle
// check while a person is being waited for. [Relay] passes the beats on, at a
// bounded rate, to something that wants to know: a client, a job queue, a
// watchdog.
//
// The workers of an errgroup all beat one execution, if the group's context was made from
// that of the execution: errgroup.WithContext(ctx) with the ctx that the function was given.
// The idle limit is then that of the group: it fires when none of them makes progress. To
// find a single worker that is stuck among others that are not, give each an execution of
// its own.
//
// # Choosing an interval
//
// Beat at least twice per idle limit, so that a beat may be late by nearly half of it without
// harm. [Interval] returns half the idle limit of the execution at hand, and at most 10 s. It
// is hard to beat too often: a beat costs some 40 ns, and 2 in a
// tight loop.
//
// # Guarantees
//
//  1. A beat blocks on nothing: no channel, no sink, no clock but a read of the
//     time. It may be called from any number of goroutines.
//  2. A beat counts for the execution it was given and for all those around it, up to the
//     first that has ended.
//  3. A beat outside an execution, or after its end, does nothing.
//  4. A recorded beat is never dated earlier than it was made, so a limit cannot
//     fire early. It is dated up to 1 ms later where more than a hundred beats
//     arrive within a millisecond, and for one more; such a burst is also not counted beat
//     by beat.
//     With a clock of one's own (timeout.WithClock) every beat is exact.
//  5. A relay calls its sink at most once per interval, one call at a time, newest detail
//     first, and never on the goroutine that beats.
//  6. A hold ends with the execution that declared it, at the latest.
//  7. Nothing here starts a goroutine or a timer before it is called, and nothing
//     is left when it has returned, been stopped, or its execution has ended.
//     The one exception is a sink that does not return.
package heartbeat
