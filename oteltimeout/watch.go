package oteltimeout

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Watch reports the executions of the process that begin from now on, until stop is called; see [timeout.Watch]. It
// does not report requests of clients, nor tools and commands without a name. Call it once. The global providers may
// be set before or after the call.
//
// Watch waits for the providers, with which it creates the tracer and the instruments. Later, hooks record the
// telemetry, under the rules of [timeout.Hooks].
//
// If the meter provider refuses an instrument, Watch returns the provider's error and reports nothing,
// and stop does nothing.
func Watch(o Options) (stop func(), err error) {
	h, err := Hooks(o)
	if err != nil {
		return func() {}, err
	}
	return timeout.Watch(h), nil
}

// Hooks returns the hooks that [Watch] uses, for [timeout.WithHooks] or [timeout.Watch]. Pass hooks to an execution
// only once: if it gets the results of two calls of Hooks, it is reported twice. Hooks returns an error if the meter
// provider refuses an instrument.
func Hooks(o Options) (timeout.Hooks, error) {
	w := &watcher{Options: o.providers(), names: names{known: make(map[string]struct{})}}
	w.tracer = w.TracerProvider.Tracer(scope, trace.WithInstrumentationVersion(version()))
	if err := w.instruments(); err != nil {
		return timeout.Hooks{}, err
	}
	return timeout.Hooks{
		Context:   w.begin,
		NearIdle:  w.nearIdle,
		Stalled:   w.stalled,
		Closing:   w.closing,
		Exceeded:  w.exceeded,
		Abandoned: w.abandoned,
		Finished:  w.finished,
	}, nil
}

// A watcher holds the tracer and the instruments of one call of Hooks.
type watcher struct {
	Options
	names  names
	tracer trace.Tracer

	toolDuration, mcpDuration, commandDuration, silence metric.Float64Histogram

	running    metric.Int64UpDownCounter
	abandonedN metric.Int64Counter
	wouldStop  metric.Int64Counter
}

func (w *watcher) instruments() error {
	m := w.MeterProvider.Meter(scope, metric.WithInstrumentationVersion(version()))
	var err [7]error
	w.toolDuration, err[0] = m.Float64Histogram("gen_ai.execute_tool.duration", metric.WithUnit("s"),
		metric.WithDescription("The duration of a single tool execution."),
		metric.WithExplicitBucketBoundaries(toolBuckets...))
	w.mcpDuration, err[1] = m.Float64Histogram("mcp.server.operation.duration", metric.WithUnit("s"),
		metric.WithDescription("The duration of an MCP request as the server sees it."),
		metric.WithExplicitBucketBoundaries(mcpBuckets...))
	w.silence, err[2] = m.Float64Histogram("tooldeadline.execution.longest_silence", metric.WithUnit("s"),
		metric.WithDescription("The longest stretch without a heartbeat in an execution."),
		metric.WithExplicitBucketBoundaries(mcpBuckets...))
	w.running, err[3] = m.Int64UpDownCounter("tooldeadline.execution.running", metric.WithUnit("{execution}"),
		metric.WithDescription("Executions that have begun and have no outcome yet."))
	w.abandonedN, err[4] = m.Int64Counter("tooldeadline.execution.abandoned", metric.WithUnit("{execution}"),
		metric.WithDescription("Executions whose function did not return when it was stopped."))
	w.commandDuration, err[5] = m.Float64Histogram("tooldeadline.command.duration", metric.WithUnit("s"),
		metric.WithDescription("The duration of a command."),
		metric.WithExplicitBucketBoundaries(mcpBuckets...))
	w.wouldStop, err[6] = m.Int64Counter("tooldeadline.execution.would_stop", metric.WithUnit("{execution}"),
		metric.WithDescription("Executions that a limit would have stopped, were it not only observed."))
	return errors.Join(err[:]...)
}
