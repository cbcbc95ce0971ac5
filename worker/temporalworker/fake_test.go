package temporalworker_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
	"github.com/tooldeadline/tooldeadline/worker/temporalworker"
)

// A heartbeat as the service gets it.
type sent struct {
	At      time.Duration // since the start of the attempt
	Details string        // JSON of each, or "" for none
}

// An attempt is the SDK above and below the interceptor, with a time that a test controls. The
// zero one has no HeartbeatTimeout and no deadline.
type attempt struct {
	Info    activity.Info
	Left    time.Duration // to the deadline, 0 is none
	Earlier *commonpb.Payloads
	Context func(context.Context) context.Context
	// Send is called for each heartbeat, before it is noted.
	Send func(details []any)

	start time.Time
	mu    sync.Mutex
	sent  []sent
	last  *commonpb.Payloads
}

// fn is an activity. record is activity.RecordHeartbeat.
type fn func(ctx context.Context, record func(context.Context, ...any)) (any, error)

func (a *attempt) run(f fn, opts temporalworker.Options) (any, error) {
	return a.runOn(temporalworker.Interceptor(opts), f, &service{a: a})
}

// runOn has another end of the outbound chain.
func (a *attempt) runOn(i interceptor.WorkerInterceptor, f fn, out interceptor.ActivityOutboundInterceptor) (any, error) {
	ctx := context.Background()
	if a.Context != nil {
		ctx = a.Context(ctx)
	}
	if a.Info.ActivityType.Name == "" {
		a.Info.ActivityType.Name = "Work"
	}
	a.start = time.Now()
	if a.Left > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.Left)
		defer cancel()
	}
	in := i.InterceptActivity(ctx, &inner{a: a, f: f})
	if err := in.Init(out); err != nil {
		return nil, err
	}
	return in.ExecuteActivity(ctx, &interceptor.ExecuteActivityInput{})
}

// defaults are the options without any.
var defaults temporalworker.Options

// limited are options with these limits.
func limited(c timeout.Config) temporalworker.Options {
	return temporalworker.Options{Policy: &policy.Policy{Default: &c}}
}

// heartbeats returns what has been sent.
func (a *attempt) heartbeats() []sent {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]sent(nil), a.sent...)
}

// next returns the attempt that follows.
func (a *attempt) next() *attempt { return &attempt{Info: a.Info, Left: a.Left, Earlier: a.last} }

// inner is the SDK's end of the inbound chain: it calls the activity.
type inner struct {
	interceptor.ActivityInboundInterceptorBase
	a   *attempt
	f   fn
	out interceptor.ActivityOutboundInterceptor
}

func (i *inner) Init(out interceptor.ActivityOutboundInterceptor) error {
	i.out = out
	return nil
}

func (i *inner) ExecuteActivity(ctx context.Context, _ *interceptor.ExecuteActivityInput) (any, error) {
	return i.f(ctx, i.out.RecordHeartbeat)
}

// service is the SDK's end of the outbound chain.
type service struct {
	interceptor.ActivityOutboundInterceptorBase
	a *attempt
}

func (s *service) GetInfo(context.Context) activity.Info { return s.a.Info }

func (s *service) HasHeartbeatDetails(context.Context) bool { return s.a.Earlier != nil }

func (s *service) GetHeartbeatDetails(_ context.Context, into ...any) error {
	return converter.GetDefaultDataConverter().FromPayloads(s.a.Earlier, into...)
}

func (s *service) RecordHeartbeat(ctx context.Context, details ...any) {
	if s.a.Send != nil {
		s.a.Send(details)
	}
	var payloads *commonpb.Payloads
	if len(details) > 1 || len(details) == 1 && details[0] != nil {
		var err error
		if payloads, err = converter.GetDefaultDataConverter().ToPayloads(details...); err != nil {
			panic(err) // as the SDK does
		}
	}
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	s.a.sent = append(s.a.sent, sent{time.Since(s.a.start), text(payloads)})
	s.a.last = payloads
}

// text is the JSON of details.
func text(details *commonpb.Payloads) string {
	var all []string
	for _, p := range details.GetPayloads() {
		all = append(all, string(p.Data))
	}
	return strings.Join(all, " ")
}

// bubble runs a test in a bubble, in which time is exact.
func bubble(t *testing.T, f func(*testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func payloads(t *testing.T, values ...any) *commonpb.Payloads {
	t.Helper()
	p, err := converter.GetDefaultDataConverter().ToPayloads(values...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
