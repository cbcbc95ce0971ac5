package temporalworker

import (
	"context"
	"fmt"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/lease"
)

// An attempt is one attempt of an activity. The service regards its worker as alive while heartbeats arrive, and passes
// the details of the last heartbeat to the next attempt.
//
// Each heartbeat replaces the details at the service, even if the heartbeat has none. So each heartbeat is sent with
// the newest details, which are
//
//   - the last details that the activity has recorded, in this or an earlier attempt;
//   - if it has recorded none, the newest detail of package heartbeat. It may come from a library that
//     the activity calls, so it must not replace a checkpoint.
type attempt struct {
	ctx  context.Context // the context of the SDK, which ends later than the context of the function
	out  interceptor.ActivityOutboundInterceptor
	info *activity.Info
	s    *settings

	turn chan struct{} // full while a goroutine sends
	over chan struct{} // closed when no more heartbeats may be sent

	// Only the goroutine that has the turn uses the fields below.
	function context.Context // the context of the function; nil before the function begins
	restored bool            // the details of the previous attempt have been read, or replaced
	unknown  bool            // the details cannot be sent again, so no heartbeat without new details is sent
	own      values          // the details that the activity has recorded last, in this or an earlier attempt
	earlier  values          // the heartbeat detail that an earlier attempt has sent in place of recorded details
	counted  uint64          // the number of the activity's heartbeats when the last one was sent to the service
}

// values holds details that were encoded when they were recorded, because the activity may change them later.
type values []converter.RawValue

// mark is the metadata key of the detail of a heartbeat of package heartbeat, as opposed to recorded details.
const mark = "io.github.tooldeadline/beat"

// isBeat reports whether raw is marked with mark.
func isBeat(raw converter.RawValue) bool { return raw.Payload().GetMetadata()[mark] != nil }

func newAttempt(ctx context.Context, out interceptor.ActivityOutboundInterceptor, info *activity.Info, s *settings) *attempt {
	return &attempt{ctx: ctx, out: out, info: info, s: s, turn: make(chan struct{}, 1), over: make(chan struct{})}
}

// every returns the interval of the heartbeats that are sent to the service.
func (l *attempt) every() time.Duration {
	if l.info.HeartbeatTimeout > 0 {
		return min(heartbeat.DefaultInterval, l.info.HeartbeatTimeout/3)
	}
	return heartbeat.DefaultInterval
}

// run calls fn under the limits of opts, and sends heartbeats until fn has returned or been abandoned. After run has
// returned, no more heartbeats are sent, although an abandoned function may record some while the next attempt runs.
func (l *attempt) run(fn func(context.Context) (any, error), opts []timeout.Option) (any, error) {
	defer close(l.over)
	var v any
	err := lease.Run(l.ctx, lease.Lease{Every: l.every(), Renew: l.renew}, func(ctx context.Context) (err error) {
		if !l.acquire(ctx) {
			return context.Cause(ctx)
		}
		l.function = ctx
		l.release()
		v, err = fn(ctx)
		return err
	}, opts...)
	if stopped, ok := err.(*timeout.Error); ok && stopped.Abandoned {
		return nil, err // the function may be writing v right now
	}
	return v, err
}

// acquire waits for the turn. It returns false if ctx or the attempt ends first.
func (l *attempt) acquire(ctx context.Context) bool {
	select { // the end of the attempt wins; that of ctx ends what follows
	case l.turn <- struct{}{}:
	case <-l.over:
		return false
	case <-ctx.Done():
		return false
	}
	select {
	case <-l.over:
		l.release()
		return false
	default:
		return true
	}
}

func (l *attempt) release() { <-l.turn }

// endTime is the longest time that the end of an activity waits for its last heartbeat.
const endTime = time.Second

// renew sends a heartbeat, if one is due. It returns the cause of ctx if ctx ends first, because RecordHeartbeat blocks
// while the service cannot be reached.
func (l *attempt) renew(ctx context.Context, s lease.Checkpoint) error {
	if l.info.IsLocalActivity { // local activities have no heartbeats at the service
		return nil
	}
	if s.Err != nil {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, endTime)
		defer cancel()
	}
	if !l.acquire(ctx) {
		return context.Cause(ctx)
	}
	if !l.due(s) {
		l.release()
		return nil
	}
	sent := make(chan struct{})
	go func() {
		defer l.release()
		defer close(sent)
		l.send(s.Detail)
	}()
	select { // a heartbeat that is sent as ctx ends may count as one that is not
	case <-sent:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// due reports whether a heartbeat must be sent. During the activity that is so if the activity has had a heartbeat
// since the last one was sent, or if its limits are enforced. After the activity has ended, when s.Err is set, it is so
// only for a detail that the SDK would not send. The caller has the turn.
func (l *attempt) due(s lease.Checkpoint) bool {
	if s.Err != nil {
		// At the end the SDK itself sends details that the activity has recorded, but not a detail of package
		// heartbeat.
		return s.Err != activity.ErrResultPending && l.ctx.Err() == nil && l.beaten() && l.unrecorded(s.Detail) != nil
	}
	// If limits are only observed, the service must be able to detect a stuck activity.
	return l.beaten() || !timeout.FromContext(l.function).Snapshot().ObserveOnly
}

// record implements RecordHeartbeat. Like the SDK, it panics if the details cannot be encoded.
func (l *attempt) record(ctx context.Context, details []any) {
	given := len(details) > 1 || len(details) == 1 && details[0] != nil // for the SDK, a single nil means no details
	var own values
	if given {
		own = l.keep(details)
	}
	if own != nil {
		heartbeat.BeatWith(ctx, own)
	} else {
		heartbeat.Beat(ctx)
	}
	// RecordHeartbeat blocks for the time of a request, and longer if the service cannot be reached. The hold suspends
	// the idle limit for that time.
	defer heartbeat.Hold(ctx)()
	if !l.acquire(context.WithoutCancel(ctx)) {
		return
	}
	defer l.release()
	if !given && l.send(l.monitor().Detail()) {
		return
	}
	// The SDK throttles heartbeats. At the end of an interval it sends the newest details with the context of the call
	// that began the interval. The caller's context may have ended by then, so l.ctx is passed.
	l.out.RecordHeartbeat(l.ctx, details...)
	if given {
		l.own, l.unknown, l.restored = own, own == nil, true
	}
}

// keep returns the details, encoded. If they cannot be encoded, it logs a warning and returns nil.
func (l *attempt) keep(details []any) values {
	payloads, err := l.s.DataConverter.ToPayloads(details...)
	if err != nil {
		l.warn("the details of a heartbeat cannot be kept, so none is sent for a silent activity: Options.DataConverter is missing?", "error", err)
		return nil
	}
	var all values
	for _, p := range payloads.GetPayloads() {
		all = append(all, converter.NewRawValue(p))
	}
	return all
}

// String returns the details as text, for snapshots and errors of the execution.
func (v values) String() string {
	var all []string
	for _, raw := range v {
		all = append(all, converter.GetDefaultDataConverter().ToString(raw.Payload()))
	}
	return strings.Join(all, ", ")
}

// beaten reports whether the activity has had a heartbeat since the last one was sent to the service.
func (l *attempt) beaten() bool { return l.monitor().Count() != l.counted }

// unrecorded returns d, the newest heartbeat detail, or nil if d comes from RecordHeartbeat or the activity has
// recorded details, which take precedence.
func (l *attempt) unrecorded(d any) any {
	if _, recorded := d.(values); recorded || l.own != nil {
		return nil
	}
	return d
}

func (l *attempt) monitor() *heartbeat.Monitor {
	if l.function == nil {
		return nil
	}
	return heartbeat.FromContext(l.function)
}

// send sends a heartbeat with the newest details; detail is the newest heartbeat detail. It returns false, and sends
// nothing, if the recorded details are unknown or a converter or codec panics, which would end the process on a
// goroutine of this package. The caller has the turn.
func (l *attempt) send(detail any) (sent bool) {
	defer func() {
		if v := recover(); v != nil {
			l.warn("heartbeat not sent", "panic", panicText(v))
		}
	}()
	l.restore()
	if l.unknown {
		return false
	}
	l.counted = l.monitor().Count()
	newest := l.own
	if newest == nil {
		newest = l.earlier
		if d := l.unrecorded(detail); d != nil {
			if raw := l.encode(d); raw != nil {
				newest = raw
			}
		}
	}
	details := make([]any, len(newest))
	for i, raw := range newest {
		details[i] = raw
	}
	l.out.RecordHeartbeat(l.ctx, details...)
	return true
}

// encode returns a heartbeat detail, encoded and marked. If it cannot be encoded, encode logs a warning and returns
// nil, and the heartbeat is sent without it.
func (l *attempt) encode(detail any) values {
	p, err := l.payload(detail)
	if err != nil || p == nil {
		l.warn("the detail of a heartbeat cannot be sent", "detail", fmt.Sprintf("%T", detail), "error", err)
		return nil
	}
	if p.Metadata == nil {
		p.Metadata = map[string][]byte{}
	}
	p.Metadata[mark] = []byte("1")
	return values{converter.NewRawValue(p)}
}

// payload encodes a detail. A panic of the converter becomes a *timeout.PanicError.
func (l *attempt) payload(detail any) (_ *commonpb.Payload, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &timeout.PanicError{Value: v}
		}
	}()
	return l.s.DataConverter.ToPayload(detail)
}

// restore reads the details of the previous attempt, once, into own or earlier. If it cannot, it sets unknown.
func (l *attempt) restore() {
	if l.restored {
		return
	}
	l.restored = true
	if !l.out.HasHeartbeatDetails(l.ctx) {
		return
	}
	l.unknown = true // stays set if the call panics
	for n := 4; ; n *= 2 {
		all, into := make(values, n), make([]any, n)
		for i := range all {
			into[i] = &all[i]
		}
		if err := l.out.GetHeartbeatDetails(l.ctx, into...); err != nil {
			l.warn("the details of the last attempt cannot be kept, so no heartbeat is sent for a silent activity", "error", err)
			return
		}
		if all[n-1].Payload() != nil {
			continue // other details may follow
		}
		for n > 0 && all[n-1].Payload() == nil {
			n--
		}
		if n == 0 {
			l.warn("the details of the last attempt cannot be kept, so no heartbeat is sent for a silent activity: the DataConverter does not know converter.RawValue?")
			return
		}
		if all = all[:n]; n == 1 && isBeat(all[0]) {
			l.earlier = all
		} else {
			l.own = all
		}
		l.unknown = false
		return
	}
}

func (l *attempt) warn(what string, args ...any) { l.s.warn(l.ctx, l.info, what, args...) }
