package oteltimeout

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// An Option changes where [Watch] and [Hooks] report to, and what [Inject] writes.
type Option interface{ apply(*settings) }

type optionFunc func(*settings)

func (f optionFunc) apply(s *settings) { f(s) }

type settings struct {
	tracers    trace.TracerProvider
	meters     metric.MeterProvider
	propagator propagation.TextMapPropagator
}

func newSettings(opts []Option) settings {
	var s settings
	for _, o := range opts {
		if o != nil {
			o.apply(&s)
		}
	}
	if s.tracers == nil {
		s.tracers = otel.GetTracerProvider()
	}
	if s.meters == nil {
		s.meters = otel.GetMeterProvider()
	}
	return s
}

// WithTracerProvider reports spans to p. nil is the global one, [otel.GetTracerProvider].
func WithTracerProvider(p trace.TracerProvider) Option {
	return optionFunc(func(s *settings) { s.tracers = p })
}

// WithMeterProvider reports metrics to p. nil is the global one, [otel.GetMeterProvider].
func WithMeterProvider(p metric.MeterProvider) Option {
	return optionFunc(func(s *settings) { s.meters = p })
}

// WithPropagator reads and writes the trace context in _meta with p. nil is the global one,
// [otel.GetTextMapPropagator], or W3C Trace Context where that has not been set.
// A server that does not trust its clients with its traces has an empty
// [propagation.NewCompositeTextMapPropagator].
func WithPropagator(p propagation.TextMapPropagator) Option {
	return optionFunc(func(s *settings) { s.propagator = p })
}

// propagation is looked up for each call, as the global one has not always been set by the
// time that the tools are watched.
func (s *settings) propagation() propagation.TextMapPropagator {
	if s.propagator != nil {
		return s.propagator
	}
	if p := otel.GetTextMapPropagator(); len(p.Fields()) > 0 {
		return p
	}
	return propagation.TraceContext{}
}
