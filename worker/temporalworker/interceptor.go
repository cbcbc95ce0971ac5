package temporalworker

import (
	"context"
	"sync/atomic"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Interceptor returns an interceptor for worker.Options.Interceptors that runs every activity of
// the worker, local ones included, under limits. The activities need no change: what they record
// with activity.RecordHeartbeat are heartbeats, and so are those of package heartbeat. Only the
// SDK's own activities, which keep a session, are left alone.
//
// The limits of an attempt are
//
//   - idle: its HeartbeatTimeout, or none if it has none;
//   - total: the time that is left to its deadline, which StartToCloseTimeout or
//     ScheduleToCloseTimeout sets, less a tenth of it, 8 s at most, so that the outcome reaches
//     the service in time;
//   - grace: that of package timeout, 7 s, or what ends before the deadline. It is also the time
//     that an activity has to clean up when it is cancelled.
//
// A [timeout.Config] given by [WithOptions], or [WithPolicy], sets others. The total is never longer
// than that above.
//
// Until the activity has returned or been abandoned, a heartbeat with the newest details is sent
// every third of the HeartbeatTimeout, every 10 s where that is longer or there is none. The SDK
// throttles it, as it does an activity's own. So the service finds out whether the worker is
// alive, and an activity that never beats learns that it was cancelled or paused: within some
// 0.8 of the HeartbeatTimeout, or the worker's DefaultHeartbeatThrottleInterval, 30 s, where it
// has none. If no heartbeat has got through for as long, the SDK cancels the activity.
//
// The interceptor is safe for concurrent use, also by several workers.
func Interceptor(opts ...Option) interceptor.WorkerInterceptor {
	return &guard{settings: newSettings(opts)}
}

type guard struct {
	interceptor.WorkerInterceptorBase
	settings
}

func (g *guard) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	i := &inbound{guard: g}
	i.Next = next
	return i
}

// The activities with which the SDK keeps a session on a worker. They send heartbeats below the
// interceptors, so they would look stuck.
const (
	sessionCreation   = "internalSessionCreationActivity"
	sessionCompletion = "internalSessionCompletionActivity"
)

// inbound is made for each attempt of an activity.
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
	l := newLease(ctx, i.out.Next, &info, &i.guard.settings)
	i.out.lease.Store(l)
	done := false
	defer func() { l.end(done) }()
	v, err := timeout.Do(ctx, func(ctx context.Context) (any, error) {
		l.begin(ctx)
		return i.Next.ExecuteActivity(ctx, in)
	}, opts...)
	done = err == nil || err == activity.ErrResultPending
	return i.guard.report(ctx, &info, v, err)
}

// outbound is what an activity calls.
type outbound struct {
	interceptor.ActivityOutboundInterceptorBase
	lease atomic.Pointer[lease] // nil before the execution, and in an activity of the SDK's
}

func (o *outbound) RecordHeartbeat(ctx context.Context, details ...any) {
	if l := o.lease.Load(); l != nil {
		l.record(ctx, details)
		return
	}
	o.Next.RecordHeartbeat(ctx, details...)
}

// HasHeartbeatDetails is true for what an activity has recorded. The detail of a beat may be that
// of any library: an activity that took it for its own checkpoint would fail in each attempt.
func (o *outbound) HasHeartbeatDetails(ctx context.Context) bool {
	if !o.Next.HasHeartbeatDetails(ctx) {
		return false
	}
	var first converter.RawValue
	return o.Next.GetHeartbeatDetails(ctx, &first) != nil || !isBeat(first)
}
