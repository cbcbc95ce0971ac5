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
		Stalled:   w.event(eventStalled),
		Closing:   w.event(eventClosing),
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
	var errs []error
	histogram := func(name, description string, buckets []float64) metric.Float64Histogram {
		h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), metric.WithExplicitBucketBoundaries(buckets...))
		errs = append(errs, err)
		return h
	}
	counter := func(name, description string) metric.Int64Counter {
		c, err := m.Int64Counter(name, metric.WithUnit("{execution}"), metric.WithDescription(description))
		errs = append(errs, err)
		return c
	}
	w.toolDuration = histogram("gen_ai.execute_tool.duration", "The duration of a single tool execution.", toolBuckets)
	w.mcpDuration = histogram("mcp.server.operation.duration", "The duration of an MCP request as the server sees it.", mcpBuckets)
	w.commandDuration = histogram("tooldeadline.command.duration", "The duration of a command.", mcpBuckets)
	w.silence = histogram("tooldeadline.execution.longest_silence", "The longest stretch without a heartbeat in an execution.", mcpBuckets)
	w.abandonedN = counter("tooldeadline.execution.abandoned", "Executions whose function did not return when it was stopped.")
	w.wouldStop = counter("tooldeadline.execution.would_stop", "Executions that a limit would have stopped, were it not only observed.")
	var err error
	w.running, err = m.Int64UpDownCounter("tooldeadline.execution.running", metric.WithUnit("{execution}"),
		metric.WithDescription("Executions that have begun and have no outcome yet."))
	return errors.Join(append(errs, err)...)
}
