package oteltimeout

import (
	"cmp"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Options hold the providers to which executions are reported. The zero value means the global providers.
type Options struct {
	// TracerProvider receives the spans; nil means the global provider, [otel.GetTracerProvider].
	TracerProvider trace.TracerProvider

	// MeterProvider receives the metrics; nil means the global provider, [otel.GetMeterProvider].
	MeterProvider metric.MeterProvider

	// Propagator reads and writes the trace context in _meta; nil means the global propagator,
	// [otel.GetTextMapPropagator], or W3C Trace Context if no global propagator is set. A server that must not
	// continue the traces of its clients sets an empty [propagation.NewCompositeTextMapPropagator].
	Propagator propagation.TextMapPropagator
}

// providers returns o with the global providers in place of nil ones.
func (o Options) providers() Options {
	o.TracerProvider = cmp.Or(o.TracerProvider, otel.GetTracerProvider())
	o.MeterProvider = cmp.Or(o.MeterProvider, otel.GetMeterProvider())
	return o
}

// propagation returns the propagator. Each call looks up the global propagator anew, because the program may set it
// after Watch.
func (o Options) propagation() propagation.TextMapPropagator {
	if o.Propagator != nil {
		return o.Propagator
	}
	if p := otel.GetTextMapPropagator(); len(p.Fields()) > 0 {
		return p
	}
	return propagation.TraceContext{}
}
