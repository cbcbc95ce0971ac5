package oteltimeout_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/tooldeadline/tooldeadline/oteltimeout"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A hostile provider panics at one place.
type hostile struct {
	noop.TracerProvider
	at   string
	hits int
}

func (h *hostile) do(here string) {
	if here == h.at {
		h.hits++
		panic("the provider panics")
	}
}

func (h *hostile) Tracer(string, ...trace.TracerOption) trace.Tracer { return hostileTracer{of: h} }

type hostileTracer struct {
	noop.Tracer
	of *hostile
}

func (t hostileTracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	t.of.do("Start")
	ctx, span := t.Tracer.Start(ctx, name, opts...)
	return ctx, hostileSpan{span, t.of}
}

type hostileSpan struct {
	trace.Span
	of *hostile
}

func (s hostileSpan) SetAttributes(...attribute.KeyValue)   { s.of.do("SetAttributes") }
func (s hostileSpan) AddEvent(string, ...trace.EventOption) { s.of.do("AddEvent") }
func (s hostileSpan) End(...trace.SpanEndOption)            { s.of.do("End") }

// SPEC 3.24: a provider that panics changes no outcome, and keeps no execution from going on.
func TestProviderPanics(t *testing.T) {
	for _, at := range []string{"Start", "SetAttributes", "AddEvent", "End"} {
		t.Run(at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hostile{at: at}
				hooks, err := oteltimeout.Hooks(oteltimeout.WithTracerProvider(h), oteltimeout.WithMeterProvider(metricnoop.NewMeterProvider()))
				if err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				for range 2 {
					err := timeout.Run(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return nil }, limits, timeout.WithName("tool"), timeout.WithHooks(hooks))
					if !errors.Is(err, timeout.ErrIdle) {
						t.Error(err)
					}
				}
				if took := time.Since(begun); took != 2*limits.Idle || h.hits == 0 {
					t.Errorf("it took %v, with %d panics", took, h.hits)
				}
				if left := timeout.Running(); len(left) > 0 {
					t.Errorf("%d are still listed as running", len(left))
				}
			})
		})
	}
}
