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
)

// A lease is an attempt of an activity as the service sees it: it lasts for as long as
// heartbeats arrive, and the next attempt gets the details of the last one.
//
// Each heartbeat replaces the details at the service, even if it has none. So each heartbeat is sent
// with the newest details, which are
//
//   - those that the activity has recorded last, in this attempt or an earlier one;
//   - if it has recorded none, the newest detail of package heartbeat. It may come from a library that
//     the activity calls, so it must not replace a checkpoint.
type lease struct {
	ctx   context.Context // the SDK's, which outlives the function's
	out   interceptor.ActivityOutboundInterceptor
	info  *activity.Info
	s     *settings
	every time.Duration

	turn chan struct{} // full while something is sent
	over chan struct{} // closed when nothing may be sent any more

	// These belong to the goroutine that has the turn.
	timer    *time.Timer
	function context.Context // nil before the function begins
	restored bool
	unknown  bool   // there are details, but they could not be kept
	own      values // recorded by the activity
	earlier  values // a beat's, of an earlier attempt
	counted  uint64 // beats when the last heartbeat was sent
}

// values are details encoded when they were recorded, because what they point to may change later.
type values []converter.RawValue

// mark marks the detail of a beat in its metadata.
const mark = "io.github.tooldeadline/beat"

func isBeat(raw converter.RawValue) bool { return raw.Payload().GetMetadata()[mark] != nil }

func newLease(ctx context.Context, out interceptor.ActivityOutboundInterceptor, info *activity.Info, s *settings) *lease {
	l := &lease{ctx: ctx, out: out, info: info, s: s, turn: make(chan struct{}, 1), over: make(chan struct{})}
	l.every = heartbeat.DefaultInterval
	if info.HeartbeatTimeout > 0 {
		l.every = min(l.every, info.HeartbeatTimeout/3)
	}
	return l
}

// begin is called with the context of the function.
func (l *lease) begin(function context.Context) {
	l.turn <- struct{}{}
	defer l.release()
	l.function = function
	if !l.info.IsLocalActivity { // the service does not know of those
		l.timer = time.AfterFunc(l.every, l.renew)
	}
}

// acquire waits for the turn. It reports false if the lease is over.
func (l *lease) acquire() bool {
	select {
	case l.turn <- struct{}{}:
	case <-l.over:
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

func (l *lease) release() { <-l.turn }

// renew runs on the timer's goroutine, one call at a time: only its end sets the timer again.
func (l *lease) renew() {
	if !l.acquire() {
		return
	}
	defer l.release()
	// If limits are only observed, the service must be able to see that the activity is stuck.
	if l.beaten() || !timeout.FromContext(l.function).Snapshot().ObserveOnly {
		l.send()
	}
	l.timer.Reset(l.every)
}

// endTime bounds how long end waits for a heartbeat that is being sent.
const endTime = time.Second

// end ends the lease when the function has returned or been abandoned. Afterwards nothing is sent: an
// abandoned function may still record heartbeats when the next attempt is already running.
func (l *lease) end(done bool) {
	var late bool
	select {
	case l.turn <- struct{}{}:
	default:
		select {
		case l.turn <- struct{}{}:
		case <-time.After(endTime):
			late = true
		}
	}
	close(l.over) // before a waiting goroutine can get the turn
	if late {
		return // the timer finds that it is over
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	if done || l.ctx.Err() != nil || !l.beaten() || l.detail() == nil {
		l.release()
		return
	}
	// The SDK has what the activity recorded, and sends it now. It does not know of beats.
	sent := make(chan struct{})
	go func() {
		defer l.release()
		defer close(sent)
		l.send()
	}()
	select {
	case <-sent:
	case <-time.After(endTime):
	}
}

// record implements RecordHeartbeat. Like the SDK's, it panics if the details cannot be encoded.
func (l *lease) record(ctx context.Context, details []any) {
	given := len(details) > 1 || len(details) == 1 && details[0] != nil // as the SDK sees it
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
	if !l.acquire() {
		return
	}
	defer l.release()
	if !given && l.send() {
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
func (l *lease) keep(details []any) values {
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

// String returns the details as text, for those who look at the execution or its error.
func (v values) String() string {
	var all []string
	for _, raw := range v {
		all = append(all, converter.GetDefaultDataConverter().ToString(raw.Payload()))
	}
	return strings.Join(all, ", ")
}

// beaten reports whether the activity has beaten since the last heartbeat was sent.
func (l *lease) beaten() bool { return l.monitor().Count() != l.counted }

// detail returns the newest detail of a beat, unless the activity has recorded it.
func (l *lease) detail() any {
	d := l.monitor().Detail()
	if _, recorded := d.(values); recorded || l.own != nil {
		return nil
	}
	return d
}

func (l *lease) monitor() *heartbeat.Monitor {
	if l.function == nil {
		return nil
	}
	return heartbeat.FromContext(l.function)
}

// send sends a heartbeat with the newest details. If they are not known, it sends nothing and returns
// false. The caller has the turn. send recovers from panics of converters and codecs, because on our own
// goroutines they would end the process.
func (l *lease) send() (sent bool) {
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
		if d := l.detail(); d != nil {
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

// encode returns the detail of a beat, encoded and marked, or nil if it cannot be encoded, which is no
// reason to lose the lease.
func (l *lease) encode(detail any) values {
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

func (l *lease) payload(detail any) (_ *commonpb.Payload, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &timeout.PanicError{Value: v}
		}
	}()
	return l.s.DataConverter.ToPayload(detail)
}

// restore takes over the details of the previous attempt.
func (l *lease) restore() {
	if l.restored {
		return
	}
	l.restored = true
	if !l.out.HasHeartbeatDetails(l.ctx) {
		return
	}
	l.unknown = true // also if that panics
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
			continue // there may be more
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

func (l *lease) warn(what string, args ...any) { l.s.warn(l.ctx, l.info, what, args...) }
