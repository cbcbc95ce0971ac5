// Package temporalworker runs the activities of a Temporal worker under limits. An activity runs for as
// long as it makes progress. A stuck activity is stopped where it runs, and its workflow gets the stack
// and the partial result.
//
//	w := worker.New(c, "files", worker.Options{
//		Interceptors: []interceptor.WorkerInterceptor{temporalworker.Interceptor(temporalworker.Options{})},
//	})
//
// No other change is necessary: [Interceptor] takes the limits from the options of each activity, and
// activity.RecordHeartbeat is the heartbeat.
//
// Temporal itself uses the HeartbeatTimeout for two questions: whether the worker is alive, and whether
// the work is stuck. The SDK does not tell an activity that it has missed the timeout, so a stuck
// activity keeps running beside its next attempt. With this package two limits answer:
//
//   - The HeartbeatTimeout detects a dead worker. It may be seconds, because
//     heartbeats are sent whatever the activity does.
//   - The idle limit detects stuck work. It defaults to the HeartbeatTimeout; a policy
//     may set it to minutes. An activity that has sent no heartbeat itself for that long is stopped
//     where it runs.
//
// # Outcomes
//
//	the activity                      the service gets
//	returned in time                  its result and its error, unchanged
//	panicked                          a PanicError, with the activity's stack in its text
//	reached the idle limit            an ApplicationError of type IdleTimeout
//	reached the total                 an ApplicationError of type TotalTimeout
//	was aborted by hand               an ApplicationError of type Aborted
//	was cancelled                     a CanceledError, the activity's own if it returned one
//	was paused, reset, or given up,
//	  or the worker stops             the context's cause
//	returned nil though it was
//	  cancelled, or the worker stops  its result: it is done
//	the same with ErrResultPending    nothing yet
//
// The retry policy applies to these types as to any other. However, if the total comes from the
// ScheduleToCloseTimeout, there is no other attempt, because no time is left for one. In the
// workflow, [OutcomeOf] returns the outcome and the partial result:
//
//	err := workflow.ExecuteActivity(ctx, IndexFiles, dir).Get(ctx, &files)
//	if o, ok := temporalworker.OutcomeOf(err); ok {
//		_ = o.Partial(&files) // the files so far
//	}
//
// Between attempts the service keeps only the type and the message of a large failure. The workflow gets
// the partial result of the last attempt. To let the next attempt continue where this one stopped, record
// the state in the details of heartbeats.
//
// # Details
//
// The service replaces the details of an activity with those of its newest heartbeat, even if that
// heartbeat has none. With this package a heartbeat without details keeps the earlier details, across
// attempts. The SDK sends details at once when an activity has ended, and otherwise at most every 0.8 of the
// HeartbeatTimeout, the newest of them: the details of a killed worker can be that old. Recorded
// details are replaced only by the details that the activity records next. If the
// activity never records any, the newest detail of heartbeat.BeatWith or progress.Report takes their
// place. Because such a detail may come from a library, activity.HasHeartbeatDetails does not report it;
// an attempt that expects it gets it from activity.GetHeartbeatDetails.
//
// # Effects
//
// An activity that ignores its context is abandoned when the grace is over. Its next attempt may run
// beside it. The slot of an abandoned activity is free, so MaxConcurrentActivityExecutionSize does not
// bound abandoned work; a worker can check timeout.AbandonedCount, and stop above a bound. An activity
// that runs a command needs a grace of at least 6 s; see package procgroup.
//
// # Guarantees
//
//  1. A heartbeat is sent every third of the HeartbeatTimeout, at least every 10 s, until the
//     activity has returned or been abandoned, however silent it is. Only the limits decide that
//     it is stuck.
//  2. An activity is stopped at the idle limit, and not before. Time during which RecordHeartbeat
//     blocks because the service cannot be reached does not count.
//  3. The total fires before the attempt's deadline, early enough for the outcome to arrive.
//  4. The outcome above is reported within the limit, the grace, and 2 s.
//  5. Nothing is sent about an attempt that has ended, not even by an abandoned activity.
//  6. No panic of a converter, a codec or a logger ends the process.
//  7. The activities that keep a session are not affected.
//  8. Nothing remains except the goroutines of abandoned activities.
package temporalworker
