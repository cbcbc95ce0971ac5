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

// An attempt of an activity is leased for as long as heartbeats arrive, and the next attempt gets its last
// details.
//
// Each heartbeat replaces the details at the service, even if it has none. So each heartbeat is sent
// with the newest details, which are
//
//   - the last details that the activity has recorded, in this or an earlier attempt;
//   - if it has recorded none, the newest detail of package heartbeat. It may come from a library that
//     the activity calls, so it must not replace a checkpoint.
type attempt struct {
	ctx  context.Context // the SDK's context, which outlives the function's
	out  interceptor.ActivityOutboundInterceptor
	info *activity.Info
	s    *settings

	turn chan struct{} // full while a goroutine sends
	over chan struct{} // closed when nothing may be sent any more

	// These belong to the goroutine that has the turn.
	function context.Context // nil before the function begins
	restored bool
	unknown  bool   // the details could not be kept
	own      values // the details that the activity has recorded
	earlier  values // the detail of a beat in an earlier attempt
	counted  uint64 // the number of beats when the last heartbeat was sent
}

// values are details encoded when they were recorded, because what they point to may change later.
type values []converter.RawValue

// mark marks the detail of a beat in its metadata.
const mark = "io.github.tooldeadline/beat"

func isBeat(raw converter.RawValue) bool { return raw.Payload().GetMetadata()[mark] != nil }

func newAttempt(ctx context.Context, out interceptor.ActivityOutboundInterceptor, info *activity.Info, s *settings) *attempt {
	return &attempt{ctx: ctx, out: out, info: info, s: s, turn: make(chan struct{}, 1), over: make(chan struct{})}
}

// every returns the time between two heartbeats.
func (l *attempt) every() time.Duration {
	if l.info.HeartbeatTimeout > 0 {
		return min(heartbeat.DefaultInterval, l.info.HeartbeatTimeout/3)
	}
	return heartbeat.DefaultInterval
}

// run calls the activity while its lease is renewed. The SDK cancels ctx when the lease is lost. Afterwards nothing is
// sent: an abandoned function may still record heartbeats when the next attempt is already running.
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

// acquire waits for the turn. It reports false if the attempt or ctx is over.
func (l *attempt) acquire(ctx context.Context) bool {
	select {
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

// endTime bounds how long an ended activity waits for a heartbeat.
const endTime = time.Second

// renew sends a heartbeat, and does not wait for it for longer than ctx: RecordHeartbeat blocks while the service cannot be
// reached.
func (l *attempt) renew(ctx context.Context, s lease.Checkpoint) error {
	if l.info.IsLocalActivity { // the service does not know of local activities
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
	select {
	case <-sent:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// due reports whether a heartbeat is to be sent. The caller has the turn.
func (l *attempt) due(s lease.Checkpoint) bool {
	if s.Err != nil {
		// The SDK has what the activity recorded, and sends it now. It does not know of beats.
		return s.Err != activity.ErrResultPending && l.ctx.Err() == nil && l.beaten() && l.unrecorded(s.Detail) != nil
	}
	// If limits are only observed, the service must be able to see that the activity is stuck.
	return l.beaten() || !timeout.FromContext(l.function).Snapshot().ObserveOnly
}

// record implements RecordHeartbeat. Like the SDK's, it panics if the details cannot be encoded.
func (l *attempt) record(ctx context.Context, details []any) {
	given := len(details) > 1 || len(details) == 1 && details[0] != nil // the SDK takes a single nil detail for none
	var own values
	if given {
		own = l.keep(details)
	}
	if own != nil {
		heartbeat.BeatWith(ctx, own)
	} else {
		heartbeat.Beat(ctx)
	}
	// RecordHeartbeat blocks for the time of a request, and longer if the service cannot be reached.
	// That does not count as silence.
	defer heartbeat.Hold(ctx)()
	if !l.acquire(context.WithoutCancel(ctx)) {
		return
	}
	defer l.release()
	if !given && l.send(l.monitor().Detail()) {
		return
	}
	// When the interval of its throttle is over, the SDK sends the newest details with the context of
	// the call that began the interval. The caller's context may have ended by then.
	l.out.RecordHeartbeat(l.ctx, details...)
	if given {
		l.own, l.unknown, l.restored = own, own == nil, true
	}
}

// keep returns the details as they are now, encoded, or nil if they cannot be encoded.
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

// String returns the details as text, for readers of the execution or its error.
func (v values) String() string {
	var all []string
	for _, raw := range v {
		all = append(all, converter.GetDefaultDataConverter().ToString(raw.Payload()))
	}
	return strings.Join(all, ", ")
}

// beaten reports whether the activity has beaten since the last heartbeat was sent.
func (l *attempt) beaten() bool { return l.monitor().Count() != l.counted }

// unrecorded returns d, the newest detail of a beat, unless the activity has recorded it.
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

// send sends a heartbeat with the newest details; detail is the newest beat's. If the details are unknown, it sends nothing and returns
// false. The caller has the turn. send recovers from panics of converters and codecs, because on our own
// goroutines they would end the process.
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

// encode returns the detail of a beat, encoded and marked, or nil if it cannot be encoded, so
// that the lease is not lost.
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

func (l *attempt) payload(detail any) (_ *commonpb.Payload, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &timeout.PanicError{Value: v}
		}
	}()
	return l.s.DataConverter.ToPayload(detail)
}

// restore takes over the details of the previous attempt.
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
