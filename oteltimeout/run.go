package oteltimeout

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A run is a reported execution. It is also the context that carries the execution's span.
type run struct {
	context.Context
	watcher   *watcher
	id        uint64
	operation timeout.Operation
	subject   []attribute.KeyValue // attributes of metrics, with bounded values
	call      *toolcall.Call       // nil unless a server has received the call
	span      trace.Span           // for a handler, the span of its context
	start     time.Time

	// The server's middleware and a typed handler may both supervise a call. The call then has two executions, and
	// only the outer one has a run. These fields describe the inner execution.
	inner   atomic.Uint64          // the ID
	stopped atomic.Pointer[string] // the error.type, or nil if it ended by itself
}

// A runKey is the key of a watcher's run in a context. Watchers that report to different providers are independent.
type runKey struct{ watcher *watcher }

func (r *run) Value(key any) any {
	if key == (runKey{r.watcher}) {
		return r
	}
	return r.Context.Value(key)
}

// runOf returns the run of the execution of s, or nil if it is not reported. It compares IDs, because the innermost
// run in ctx may be that of an enclosing execution.
func (w *watcher) runOf(ctx context.Context, s *timeout.Snapshot) *run {
	if r := w.innermost(ctx); r != nil && r.id == s.ID {
		return r
	}
	return nil
}

func (w *watcher) innermost(ctx context.Context) *run {
	r, _ := ctx.Value(runKey{w}).(*run)
	return r
}

// begin is the Context hook. Each of its calls is followed by a call of Finished.
func (w *watcher) begin(ctx context.Context, s timeout.Snapshot) context.Context {
	switch {
	case s.Operation == timeout.OperationRequest:
		return ctx
	case s.Operation == timeout.OperationHandler: // a handler around a whole mux has no name
	case s.Tool == "":
		return ctx
	}
	r := &run{watcher: w, id: s.ID, operation: s.Operation}
	if s.Operation == timeout.OperationTool {
		r.call = toolcall.Starting(ctx)
	}
	if outer := w.innermost(ctx); outer != nil && outer.id == s.Parent && outer.sameCall(r) {
		outer.stopped.Store(nil) // left by an earlier call of the handler
		outer.inner.Store(s.ID)
		return ctx
	}
	name := ""
	if s.Tool != "" {
		name = w.names.bounded(s.Tool)
	}
	r.subject = subject(s.Operation, name)
	r.start = time.Now() // s.Start may be on a test's clock
	r.Context, r.span = w.startSpan(ctx, r, name, &s)
	w.running.Add(r, 1, metric.WithAttributes(r.subject...))
	return r
}

func (r *run) sameCall(other *run) bool {
	return r.call != nil && other.call != nil && r.call.Session == other.call.Session && r.call.Tool == other.call.Tool
}

func (w *watcher) startSpan(ctx context.Context, r *run, name string, s *timeout.Snapshot) (context.Context, trace.Span) {
	var attrs []attribute.KeyValue
	if s.Limits.Total > 0 {
		attrs = append(attrs, limitTotal.Float64(s.Limits.Total.Seconds()))
	}
	if s.Limits.Idle > 0 {
		attrs = append(attrs, limitIdle.Float64(s.Limits.Idle.Seconds()))
	}
	kind := trace.SpanKindInternal
	opts := []trace.SpanStartOption{trace.WithTimestamp(r.start)}
	switch {
	case r.operation == timeout.OperationHandler:
		span := trace.SpanFromContext(ctx)
		span.SetAttributes(attrs...)
		return ctx, span
	case r.operation == timeout.OperationCommand:
		kind = trace.SpanKindClient
		attrs = append(attrs, executableName.String(cut(s.Tool)))
	case r.call != nil:
		name, kind = toolsCall+" "+name, trace.SpanKindServer
		attrs = append(attrs, operationName.String(executeTool), toolName.String(cut(s.Tool)), methodName.String(toolsCall))
		if id := r.call.RequestID; id != "" {
			attrs = append(attrs, requestID.String(cut(id)))
		}
		if id := r.call.SessionID; id != "" {
			attrs = append(attrs, sessionID.String(cut(id)))
		}
		there := trace.SpanContextFromContext(ctx)
		ctx = w.propagation().Extract(ctx, carrier(r.call.Meta))
		if there.IsValid() && !there.Equal(trace.SpanContextFromContext(ctx)) {
			opts = append(opts, trace.WithLinks(trace.Link{SpanContext: there}))
		}
	default:
		name = executeTool + " " + name
		attrs = append(attrs, operationName.String(executeTool), toolName.String(cut(s.Tool)))
	}
	return w.tracer.Start(ctx, name, append(opts, trace.WithSpanKind(kind), trace.WithAttributes(attrs...))...)
}

func (w *watcher) nearIdle(ctx context.Context, s timeout.Snapshot) {
	if r := w.runOf(ctx, &s); r != nil {
		r.span.AddEvent(eventNearIdle, trace.WithAttributes(sinceBeat.Float64(s.SinceBeat.Seconds())))
	}
}

// event returns a hook that adds an event to the span. If the span has already ended, AddEvent does nothing.
func (w *watcher) event(name string) func(context.Context, timeout.Snapshot) {
	return func(ctx context.Context, s timeout.Snapshot) {
		if r := w.runOf(ctx, &s); r != nil {
			r.span.AddEvent(name)
		}
	}
}

// exceeded is the Exceeded hook. It adds an event for a limit that is only observed. finished reports an enforced
// limit.
func (w *watcher) exceeded(ctx context.Context, s timeout.Snapshot) {
	if r := w.runOf(ctx, &s); r != nil && s.ObserveOnly {
		r.span.AddEvent(eventWouldStop, trace.WithAttributes(errorType.String(stopClass(s.Err))))
	}
}

func (w *watcher) abandoned(ctx context.Context, s timeout.Snapshot) {
	if r := w.runOf(ctx, &s); r != nil {
		r.span.AddEvent(eventAbandoned)
		w.abandonedN.Add(ctx, 1, metric.WithAttributes(r.subject...))
	}
}

func (w *watcher) finished(ctx context.Context, s timeout.Snapshot) {
	r := w.runOf(ctx, &s)
	if r == nil {
		if outer := w.innermost(ctx); outer != nil && outer.inner.Load() == s.ID && s.Err != nil && !s.Returned {
			class, _ := outer.describe(&s)
			outer.stopped.Store(&class)
		}
		return
	}
	end := time.Now()
	w.running.Add(ctx, -1, metric.WithAttributes(r.subject...))

	if s.Observed != nil {
		class := errorType.String(stopClass(s.Observed))
		w.wouldStop.Add(ctx, 1, metric.WithAttributes(append(r.subject[:len(r.subject):len(r.subject)], class)...))
	}
	attrs := append(make([]attribute.KeyValue, 0, len(r.subject)+4), r.subject...)
	r.span.SetAttributes(beats.Int64(int64(s.Beats)), longestSilence.Float64(s.LongestGap.Seconds()))
	if s.Err != nil {
		class, text := r.describe(&s)
		attrs = append(attrs, errorType.String(class))
		r.span.SetAttributes(errorType.String(class))
		r.span.SetStatus(codes.Error, text)
		if cause := toolcall.CauseOf(s.Err); cause != "" && !s.Returned {
			attrs = append(attrs, abortCause.String(cause))
			r.span.SetAttributes(abortCause.String(cause))
		}
	}
	if code, ok := exitCode(&s); ok && r.operation == timeout.OperationCommand {
		r.span.SetAttributes(processExitCode.Int(code))
	}
	if r.operation != timeout.OperationHandler {
		r.span.End(trace.WithTimestamp(end))
	}

	took := end.Sub(r.start).Seconds()
	w.silence.Record(ctx, s.LongestGap.Seconds(), metric.WithAttributes(attrs...))
	switch r.operation {
	case timeout.OperationHandler: // the instrumentation records http.server.request.duration
	case timeout.OperationCommand:
		w.commandDuration.Record(ctx, took, metric.WithAttributes(attrs...))
	default:
		w.toolDuration.Record(ctx, took, metric.WithAttributes(attrs...))
	}
	if r.call != nil {
		attrs = append(attrs, methodName.String(toolsCall), operationName.String(executeTool))
		w.mcpDuration.Record(ctx, took, metric.WithAttributes(attrs...))
	}
}

// describe returns the error.type and the text of s.Err, which is not nil. If s.Err holds a nil pointer, or its Is
// method panics, the text is the name of its type.
func (r *run) describe(s *timeout.Snapshot) (class, text string) {
	class, text = r.ownError(), fmt.Sprintf("%T", s.Err)
	defer func() { _ = recover() }()
	if !s.Returned {
		class = stopClass(s.Err)
	} else if stopped := r.stopped.Load(); stopped != nil {
		class = *stopped
	}
	if said := textOf(s.Err); said != "<nil>" {
		text = said
	}
	return class, text
}

// textOf returns the text of an error, within the same bounds of size and time as the text of a panic.
func textOf(err error) string {
	switch err := err.(type) {
	case *timeout.Error:
		return err.Error()
	case *timeout.PanicError:
		return err.Error()
	}
	return strings.TrimPrefix((&timeout.PanicError{Value: err}).Error(), "panic: ")
}

// ownError returns the error.type for an error that the function returned. Even if that error is or wraps the timeout
// of another execution, this execution was not stopped.
func (r *run) ownError() string {
	switch r.operation {
	case timeout.OperationTool:
		return toolError
	case timeout.OperationCommand:
		return commandError
	}
	return other
}

// stopClass returns the error.type for an execution whose function has not returned by itself. It checks the type of
// err and not what err wraps, because a function may panic with the timeout of another execution.
func stopClass(err error) string {
	switch err := err.(type) {
	case *timeout.Error:
		switch err.Kind {
		case timeout.ErrIdle:
			return "idle_timeout"
		case timeout.ErrTotal:
			return "total_timeout"
		case timeout.ErrAborted:
			return "aborted"
		}
	case *timeout.PanicError:
		return "panic"
	default:
		if errors.Is(err, timeout.ErrGoexit) {
			return "goexit"
		}
		if o, ok := toolcall.OutcomeOf(err); ok { // a command that was stopped for its behaviour
			return o.Kind
		}
	}
	return other
}

// exitCode returns the exit code of a command. ok is false if there is none, because the command was stopped, a
// signal ended it, or it was never started.
func exitCode(s *timeout.Snapshot) (code int, ok bool) {
	if s.Err == nil {
		return 0, true
	}
	defer func() { _ = recover() }()
	var exit *exec.ExitError
	if s.Returned && errors.As(s.Err, &exit) && exit.ExitCode() >= 0 {
		return exit.ExitCode(), true
	}
	return 0, false
}
