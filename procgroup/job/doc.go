// Package job runs commands that outlive one call: one call starts a command under limits, and other calls read its
// output, write to its input, wait for it and stop it. It is for tools that run commands for a model, and for pages
// that show them.
//
//	var jobs job.Set
//	j, err := jobs.Start(ctx, exec.Command("make", "-j8"), procgroup.Limits(limits))
//	why := j.Wait(ctx, job.Until{Input: true, Silence: 30 * time.Second}) // or the end
//
// A job is a command of package procgroup; it takes the same options and has the same Result. A [Set] starts jobs, and
// bounds their number and the output that is kept.
//
// # Reading
//
// A position in the output is the number of bytes before it. A reader keeps the position up to which it has read, and
// passes it to the next call. So there may be any number of readers, in this process or in others, and a reader that
// stops reading occupies nothing:
//
//	for from, last := int64(0), false; !last; {
//		j.Wait(ctx, job.Until{Output: true, From: from})
//		p := j.ReadText(from, 0)
//		show(p.Dropped, p.Data)
//		from, last = p.Next, p.Last
//	}
//
// Both output streams of a command share one pipe, so the output is in the order of writing.
//
// # Guarantees
//
//  1. The limits of a job hold from its start to its end, whether or not anybody looks. A job runs on when the context
//     of the call that started it ends, and when an execution of package timeout that this call was part of ends.
//  2. A wait ends at the first of the events that it names, at the end of the command, or when its context is done, and
//     reports which of these it was. It never goes on after the result is complete. Output that the command writes
//     before it ends is reported before the end: a wait for a line, or for output, never reports the end instead.
//  3. A reader gets every byte that was written after its position once, or the number of bytes that were dropped
//     before what it gets. Nothing follows the piece that reports that it is the last.
//  4. Write never blocks longer than its context allows. If the job has ended, it returns the status of the job and no
//     error.
//  5. A job that runs never leaves its Set. When a bound of the Set is reached, the jobs that ended first go; if that
//     is not enough, Start returns [ErrFull] and nothing goes.
//  6. When Close returns, all jobs have ended, and nothing of them is left, as far as the containment reaches. The
//     error of Close names processes that the system does not kill; processes that Orphans of procgroup.Stop has kept
//     stay alive. Close takes at most the longest AbortDelay of a job and 1 s.
//  7. A Set has no goroutine, timer or descriptor when it has no jobs. A job that has ended has nothing but the timer
//     of its retention.
package job
