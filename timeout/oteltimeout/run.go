package oteltimeout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A run is an execution that is reported. It is the context with its span as well.
type run struct {
	context.Context
	watcher *watcher
	id      uint64
	tool    string         // bounded
	call    *toolcall.Call // nil where no server has received it
	span    trace.Span
	start   time.Time
}

// A runKey is one watcher's: two that report to different providers know nothing of each other.
type runKey struct{ watcher *watcher }

func (r *run) Value(key any) any {
	if key == (runKey{r.watcher}) {
		return r
	}
	return r.Context.Value(key)
}

// of returns the run of an execution, nil if it is not reported. The innermost one in ctx may
// be that of an execution around.
func (w *watcher) of(ctx context.Context, s *timeout.Snapshot) *run {
	if r, _ := ctx.Value(runKey{w}).(*run); r != nil && r.id == s.ID {
		return r
	}
	return nil
}

// begin is the hook Context: each has its Finished.
func (w *watcher) begin(ctx context.Context, s timeout.Snapshot) context.Context {
	if s.Tool == "" || request.IsOutgoing(ctx) {
		return ctx
	}
	r := &run{watcher: w, id: s.ID, call: toolcall.Starting(ctx)}
	if r.again(ctx, &s) {
		return ctx
	}
	r.tool = w.names.bounded(s.Tool)
	r.start = time.Now() // s.Start is on the execution's clock, which may be a test's
	r.Context, r.span = w.startSpan(ctx, r, &s)
	w.running.Add(r, 1, metric.WithAttributes(toolName.String(r.tool)))
	return r
}

// again reports whether the execution around is of the same call: a typed handler has limits of
// its own, and those of the server's middleware around.
func (r *run) again(ctx context.Context, s *timeout.Snapshot) bool {
	around, _ := ctx.Value(runKey{r.watcher}).(*run)
	return around != nil && around.id == s.Around && around.call != nil && r.call != nil &&
		around.call.Session == r.call.Session && around.call.Tool == r.call.Tool
}

func (w *watcher) startSpan(ctx context.Context, r *run, s *timeout.Snapshot) (context.Context, trace.Span) {
	name, kind := executeTool, trace.SpanKindInternal
	attrs := []attribute.KeyValue{operationName.String(executeTool), toolName.String(cut(s.Tool))}
	opts := []trace.SpanStartOption{trace.WithTimestamp(r.start)}
	if r.call != nil {
		name, kind = toolsCall, trace.SpanKindServer
		attrs = append(attrs, methodName.String(toolsCall))
		there := trace.SpanContextFromContext(ctx)
		ctx = w.propagation().Extract(ctx, carrier(r.call.Meta))
		if there.IsValid() && !there.Equal(trace.SpanContextFromContext(ctx)) {
			opts = append(opts, trace.WithLinks(trace.Link{SpanContext: there}))
		}
	}
	if s.Limits.Total > 0 {
		attrs = append(attrs, limitTotal.Float64(s.Limits.Total.Seconds()))
	}
	if s.Limits.Idle > 0 {
		attrs = append(attrs, limitIdle.Float64(s.Limits.Idle.Seconds()))
	}
	opts = append(opts, trace.WithSpanKind(kind), trace.WithAttributes(attrs...))
	return w.tracer.Start(ctx, name+" "+r.tool, opts...)
}

func (w *watcher) nearIdle(ctx context.Context, s timeout.Snapshot) {
	if r := w.of(ctx, &s); r != nil {
		r.span.AddEvent(eventNearIdle, trace.WithAttributes(sinceBeat.Float64(s.SinceBeat.Seconds())))
	}
}

func (w *watcher) stalled(ctx context.Context, s timeout.Snapshot) {
	if r := w.of(ctx, &s); r != nil {
		r.span.AddEvent(eventStalled)
	}
}

// exceeded adds what would be an error if the limit were enforced. Where it is, the span says
// so when it ends.
func (w *watcher) exceeded(ctx context.Context, s timeout.Snapshot) {
	if r := w.of(ctx, &s); r != nil && s.ObserveOnly {
		r.span.AddEvent(eventWouldStop, trace.WithAttributes(errorType.String(classOf(s.Err))))
	}
}

func (w *watcher) abandoned(ctx context.Context, s timeout.Snapshot) {
	if r := w.of(ctx, &s); r != nil {
		r.span.AddEvent(eventAbandoned)
		w.abandonedN.Add(ctx, 1, metric.WithAttributes(toolName.String(r.tool)))
	}
}

func (w *watcher) finished(ctx context.Context, s timeout.Snapshot) {
	r := w.of(ctx, &s)
	if r == nil {
		return
	}
	end := time.Now()
	w.running.Add(ctx, -1, metric.WithAttributes(toolName.String(r.tool)))

	if s.Observed != nil {
		w.wouldStop.Add(ctx, 1, metric.WithAttributes(toolName.String(r.tool), errorType.String(classOf(s.Observed))))
	}
	attrs := make([]attribute.KeyValue, 0, 4)
	attrs = append(attrs, toolName.String(r.tool))
	r.span.SetAttributes(beats.Int64(int64(s.Beats)), longestSilence.Float64(s.LongestGap.Seconds()))
	if s.Err != nil {
		class, text := describe(s.Err)
		attrs = append(attrs, errorType.String(class))
		r.span.SetAttributes(errorType.String(class))
		r.span.SetStatus(codes.Error, text)
	}
	r.span.End(trace.WithTimestamp(end))

	took := end.Sub(r.start).Seconds()
	w.toolDuration.Record(ctx, took, metric.WithAttributes(attrs...))
	w.silence.Record(ctx, s.LongestGap.Seconds(), metric.WithAttributes(attrs...))
	if r.call != nil {
		attrs = append(attrs, methodName.String(toolsCall), operationName.String(executeTool))
		w.mcpDuration.Record(ctx, took, metric.WithAttributes(attrs...))
	}
}

// describe returns the error.type of an outcome, and its text. The methods of an error may panic,
// as those of a nil pointer do.
func describe(err error) (class, text string) {
	class, text = toolError, fmt.Sprintf("%T", err)
	defer func() { _ = recover() }()
	class = classOf(err)
	text = err.Error()
	return class, text
}

func classOf(err error) string {
	var stop *timeout.Error
	var panicked *timeout.PanicError
	switch {
	case errors.As(err, &stop): // first: one that was stopped may have panicked then
		switch stop.Kind {
		case timeout.Idle:
			return "idle_timeout"
		case timeout.Total:
			return "total_timeout"
		case timeout.Aborted:
			return "aborted"
		}
	case errors.As(err, &panicked):
		return "panic"
	case errors.Is(err, timeout.ErrGoexit):
		return "goexit"
	}
	return toolError
}

// cut bounds the length of a name.
func cut(name string) string {
	if len(name) <= maxNameLength {
		return name
	}
	return strings.ToValidUTF8(name[:maxNameLength], "")
}
