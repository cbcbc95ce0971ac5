package oteltimeout

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Options say where to report. The zero value reports to the global providers.
type Options struct {
	// TracerProvider gets the spans; nil means the global one, [otel.GetTracerProvider].
	TracerProvider trace.TracerProvider

	// MeterProvider gets the metrics; nil means the global one, [otel.GetMeterProvider].
	MeterProvider metric.MeterProvider

	// Propagator reads and writes the trace context in _meta; nil means the global one,
	// [otel.GetTextMapPropagator], or W3C Trace Context if that has not been set. A server that does not
	// want to continue the traces of its clients uses an empty [propagation.NewCompositeTextMapPropagator].
	Propagator propagation.TextMapPropagator
}

// providers returns o with the global providers in the place of those that are not given.
func (o Options) providers() Options {
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	return o
}

// propagation returns the propagator. It is called for each call, because the global one may be set
// after Watch was called.
func (o Options) propagation() propagation.TextMapPropagator {
	if o.Propagator != nil {
		return o.Propagator
	}
	if p := otel.GetTextMapPropagator(); len(p.Fields()) > 0 {
		return p
	}
	return propagation.TraceContext{}
}
