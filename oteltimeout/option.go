package oteltimeout

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

type (
	// An Option configures [Watch] or [Hooks].
	Option interface{ apply(*settings) }
	// An InjectOption configures [Inject], [Watch] or [Hooks].
	InjectOption interface {
		Option
		applyInject(*settings)
	}
)

type optionFunc func(*settings)

func (f optionFunc) apply(s *settings) { f(s) }

type injectFunc func(*settings)

func (f injectFunc) apply(s *settings)       { f(s) }
func (f injectFunc) applyInject(s *settings) { f(s) }

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

// WithTracerProvider reports spans to p. Defaults to the global provider, [otel.GetTracerProvider];
// nil means the default.
func WithTracerProvider(p trace.TracerProvider) Option {
	return optionFunc(func(s *settings) { s.tracers = p })
}

// WithMeterProvider reports metrics to p. Defaults to the global provider, [otel.GetMeterProvider];
// nil means the default.
func WithMeterProvider(p metric.MeterProvider) Option {
	return optionFunc(func(s *settings) { s.meters = p })
}

// WithPropagator reads and writes the trace context in _meta with p. Defaults to the global propagator,
// [otel.GetTextMapPropagator], or W3C Trace Context if that has not been set; nil means the default.
// A server that does not want to continue the traces of its clients should use an empty
// [propagation.NewCompositeTextMapPropagator].
func WithPropagator(p propagation.TextMapPropagator) InjectOption {
	return injectFunc(func(s *settings) { s.propagator = p })
}

// propagation returns the propagator. It is called for each call, because the global one may be set
// after Watch was called.
func (s *settings) propagation() propagation.TextMapPropagator {
	if s.propagator != nil {
		return s.propagator
	}
	if p := otel.GetTextMapPropagator(); len(p.Fields()) > 0 {
		return p
	}
	return propagation.TraceContext{}
}
