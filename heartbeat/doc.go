// Package heartbeat lets a tool report that it is still making progress.
//
// A tool calls [Beat] with its context. It does not need to know whether an execution supervises it:
//
//	for _, file := range files {
//		process(file)
//		heartbeat.Beat(ctx)
//	}
//
// Package timeout supervises the tool: it cancels the context after an idle limit without a beat.
// Outside such an execution, under a plain context in a command-line tool or a test, a beat does
// nothing, so the same code runs unchanged.
//
// Where calls of Beat are awkward, [Reader] and [Writer] beat for each transfer, [Keep] beats on a timer during a
// call that cannot beat, and [Hold] suspends the idle check while the tool waits for a person. [Relay] passes the
// beats on, at a bounded rate, to a client, a job queue or a watchdog.
//
// All workers of an errgroup beat for the same execution if the group's context comes from that of the execution:
// errgroup.WithContext(ctx) with the ctx that the function gets. The idle limit then applies to the group: it fires
// when no worker makes progress. To find a single stuck worker, give each worker an execution of its own.
//
// # Choosing an interval
//
// Beat at least twice per idle limit; a beat may then be late by nearly half the limit without harm. [Interval] returns
// half the idle limit of the current execution, or of the watchdog of the process, and at most 10 s. Beating too often
// costs little: some 40 ns per beat, and 2 ns in a tight loop.
//
// # Guarantees
//
//  1. A beat never blocks: it waits for no channel and no sink, and only reads the time. It may be
//     called from any number of goroutines.
//  2. A beat counts for its execution and for all enclosing executions, up to the first that has ended.
//  3. A beat outside an execution does nothing. A beat after the execution's end only shows, in the
//     snapshot of an abandoned function, that the function goes on.
//  4. A recorded beat is never dated earlier than it was made, so a limit cannot fire early. During a burst of more
//     than a hundred beats in a millisecond, and for a millisecond after it, a beat may be dated up to 1 ms late, and
//     not every beat is counted. On a clock set with timeout.WithClock every beat is exact.
//  5. A relay calls its sink at most once per interval, one call at a time, with the newest detail,
//     and never on a goroutine that beats. At its end it passes on a detail that has not been.
//  6. A hold ends with the execution that declared it, at the latest.
//  7. The package starts no goroutine and no timer before it is called, and leaves none when a call
//     has returned, a relay has been stopped or the execution has ended. The one exception is a
//     sink that does not return; at the end of an execution it has 2 s to.
package heartbeat
