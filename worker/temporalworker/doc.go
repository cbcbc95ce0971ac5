// Package temporalworker runs the activities of a Temporal worker under limits: an activity is kept
// for as long as it makes progress, stopped where it runs when it is stuck, and its workflow
// learns where it was and what it had by then.
//
//	w := worker.New(c, "files", worker.Options{
//		Interceptors: []interceptor.WorkerInterceptor{temporalworker.Interceptor()},
//	})
//
// That is all: [Interceptor] takes the limits from the options of each activity, and what an
// activity records with activity.RecordHeartbeat are its heartbeats.
//
// Temporal by itself has the HeartbeatTimeout for two questions: whether the worker is alive, and
// whether the work is stuck. The SDK does not tell an activity that it has missed it, so a stuck
// one runs on beside its next attempt. Here two limits answer:
//
//   - The HeartbeatTimeout finds out whether the worker is alive. It may be seconds, since
//     heartbeats are sent whatever the activity does.
//   - The idle limit finds out whether the work is stuck. It is the HeartbeatTimeout unless a
//     policy says otherwise, which may be minutes. An activity that has gone without a heartbeat
//     of its own for that long is stopped where it runs.
//
// # Outcomes
//
//	the activity                      the service gets
//	returned in time                  what it returned, its error as it is
//	panicked                          a PanicError, with the activity's stack in its text
//	reached the idle limit            an ApplicationError of type IdleTimeout
//	reached the total                 one of type TotalTimeout
//	was aborted by hand               one of type Aborted
//	was cancelled                     a CanceledError; its own, if it returned one
//	was paused, reset, or given up,
//	  or the worker stops             the context's cause
//	returned nil though it was
//	  cancelled, or the worker stops  its result: it is done
//	the same, with ErrResultPending   nothing yet
//
// The retry policy applies to these types as to any other. But where the total is that of the
// ScheduleToCloseTimeout, nothing is left for another attempt, and so there is none, as after that
// timeout itself. In the workflow [OutcomeOf] has the outcome and the partial result:
//
//	err := workflow.ExecuteActivity(ctx, IndexFiles, dir).Get(ctx, &files)
//	if o, ok := temporalworker.OutcomeOf(err); ok {
//		_ = o.Partial(&files) // those that it had by then
//	}
//
// Between attempts the service keeps no more of a large failure than type and message. The
// partial result that the workflow sees is that of the last attempt; what the next attempt is to
// go on from belongs into the details of heartbeats.
//
// # Details
//
// The service replaces the details of an activity by those of its newest heartbeat, also where
// that has none. Here a heartbeat without details keeps those before, across attempts. What an
// activity records is only ever replaced by what it records next. If it never records any, the
// newest detail of a heartbeat.BeatWith or progress.Report takes their place. Since that may be a
// library's, activity.HasHeartbeatDetails does not report it; activity.GetHeartbeatDetails returns
// it to the attempt that expects it.
//
// # Effects
//
// An activity that ignores its context is abandoned when the grace is over: its next attempt may
// run beside it, and it has given its slot back, so that MaxConcurrentActivityExecutionSize does
// not bound such work. A worker can look at timeout.AbandonedCount, and stop above a bound. An activity
// that runs a command needs a grace of 6 s or more, see package procgroup.
//
// # Guarantees
//
//  1. A heartbeat is sent every third of the HeartbeatTimeout, at least every 10 s, until the
//     activity has returned or been abandoned, however silent it is. Only the limits decide that
//     it is stuck.
//  2. An activity is stopped at the idle limit, and not before. The time that RecordHeartbeat
//     blocks, because the service cannot be reached, does not count.
//  3. The total fires before the attempt's deadline, early enough for the outcome to arrive.
//  4. The outcome above is reported within the limit, the grace, and 2 s.
//  5. Nothing is sent about an attempt that has ended, also not by an activity that was abandoned.
//  6. No panic of a converter, a codec or a logger ends the process.
//  7. The activities that keep a session are left alone.
//  8. Nothing is left but the goroutines of abandoned activities.
package temporalworker
