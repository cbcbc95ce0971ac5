package temporalworker

import (
	"context"
	"sync/atomic"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
)

// Interceptor returns an interceptor for worker.Options.Interceptors that runs every activity of the worker, including
// local activities, under limits. The activities need no change: activity.RecordHeartbeat is a heartbeat, as are the
// functions of package heartbeat. The internal activities of the SDK that keep a session are not affected.
//
// The limits of an attempt are
//
//   - idle: its HeartbeatTimeout; no limit without one;
//   - total: the time left until its deadline, which StartToCloseTimeout or ScheduleToCloseTimeout
//     sets, minus a tenth of it, at most 8 s, so that the outcome reaches the service in time;
//   - grace: 7 s, as in package timeout, or less, so that it ends before the deadline. An activity
//     that is cancelled has the same time to clean up.
//
// The Policy of the [Options] sets other limits. The total is never longer than in this list.
//
// Until the activity has returned or been abandoned, a heartbeat with the newest details is sent every third of the
// HeartbeatTimeout, but at least every 10 s. For a local activity none is sent. The SDK throttles these heartbeats
// like heartbeats of the activity. So the service can detect a dead worker, and the context of an activity that sends
// no heartbeat itself is cancelled when the activity is cancelled or paused: within about 0.8 of the HeartbeatTimeout
// or, without one, within the worker's DefaultHeartbeatThrottleInterval, 30 s. If no heartbeat reaches the service
// for that long, the SDK cancels the activity.
//
// The interceptor is safe for concurrent use, and may be shared by workers.
func Interceptor(opts Options) interceptor.WorkerInterceptor {
	return &guard{settings: newSettings(opts)}
}

// A guard is the interceptor of a worker.
type guard struct {
	interceptor.WorkerInterceptorBase
	*settings
}

func (g *guard) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	i := &inbound{guard: g}
	i.Next = next
	return i
}

// Names of the activities with which the SDK keeps a session on a worker. Their heartbeats bypass the interceptors, so
// the idle limit would stop them.
const (
	sessionCreation   = "internalSessionCreationActivity"
	sessionCompletion = "internalSessionCompletionActivity"
)

// An inbound intercepts the execution of one attempt of an activity, and runs it under limits.
type inbound struct {
	interceptor.ActivityInboundInterceptorBase
	guard *guard
	out   outbound
}

func (i *inbound) Init(out interceptor.ActivityOutboundInterceptor) error {
	i.out.Next = out
	return i.Next.Init(&i.out)
}

func (i *inbound) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (_ any, err error) {
	info := i.out.Next.GetInfo(ctx)
	if name := info.ActivityType.Name; name == sessionCreation || name == sessionCompletion {
		return i.Next.ExecuteActivity(ctx, in)
	}
	opts, err := i.guard.options(ctx, &info)
	if err != nil {
		return nil, err
	}
	l := newAttempt(ctx, i.out.Next, &info, i.guard.settings)
	i.out.attempt.Store(l)
	v, err := l.run(func(ctx context.Context) (any, error) { return i.Next.ExecuteActivity(ctx, in) }, opts)
	return i.guard.report(ctx, &info, v, err)
}

// An outbound intercepts the calls of an activity to the SDK.
type outbound struct {
	interceptor.ActivityOutboundInterceptorBase
	attempt atomic.Pointer[attempt] // nil before the execution, and in the SDK's own activities
}

func (o *outbound) RecordHeartbeat(ctx context.Context, details ...any) {
	if l := o.attempt.Load(); l != nil {
		l.record(ctx, details)
		return
	}
	o.Next.RecordHeartbeat(ctx, details...)
}

// HasHeartbeatDetails reports whether the activity has recorded details, in this or an earlier attempt. It returns
// false for the detail of a heartbeat of package heartbeat. Such a detail may come from a library, and an activity that
// read it as its own checkpoint would fail in each attempt.
func (o *outbound) HasHeartbeatDetails(ctx context.Context) bool {
	if !o.Next.HasHeartbeatDetails(ctx) {
		return false
	}
	var first converter.RawValue
	return o.Next.GetHeartbeatDetails(ctx, &first) != nil || !isBeat(first)
}
