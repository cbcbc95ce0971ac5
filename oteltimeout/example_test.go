package oteltimeout_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/tooldeadline/tooldeadline/oteltimeout"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/httptimeout"
)

// Every tool of the process has a span. A program exports to a collector what this one prints.
func ExampleWatch() {
	spans := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	stop, err := oteltimeout.Watch(oteltimeout.Options{TracerProvider: tracers})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()

	_ = timeout.Run(context.Background(), func(ctx context.Context) error {
		<-ctx.Done() // stuck
		return ctx.Err()
	}, timeout.Config{Idle: 50 * time.Millisecond}, timeout.WithName("search"))

	for _, s := range spans.GetSpans() {
		fmt.Println(s.Name)
		for _, a := range s.Attributes {
			if a.Key == "error.type" {
				fmt.Println(a.Value.AsString())
			}
		}
	}
	// Output:
	// execute_tool search
	// idle_timeout
}

// Only what is given the hooks is measured.
func ExampleHooks() {
	reader := sdkmetric.NewManualReader()
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	hooks, err := oteltimeout.Hooks(oteltimeout.Options{MeterProvider: meters})
	if err != nil {
		fmt.Println(err)
		return
	}
	hash := func(context.Context) error { return nil }
	for range 3 {
		_ = timeout.Run(context.Background(), hash, timeout.WithName("hash"), timeout.WithHooks(hooks))
	}
	_ = timeout.Run(context.Background(), hash, timeout.WithName("hash"))

	var all metricdata.ResourceMetrics
	_ = reader.Collect(context.Background(), &all)
	for _, m := range all.ScopeMetrics[0].Metrics {
		if h, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == "gen_ai.execute_tool.duration" {
			fmt.Println(m.Name, m.Unit, h.DataPoints[0].Count)
		}
	}
	// Output:
	// gen_ai.execute_tool.duration s 3
}

// A client sends its trace with the request, and the tool's span at the server goes on from it.
func ExampleInject() {
	ctx := trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{15: 1}, SpanID: trace.SpanID{7: 2}, TraceFlags: trace.FlagsSampled,
	}))
	meta := oteltimeout.Inject(ctx, map[string]any{"progressToken": "p1"}, oteltimeout.Options{})
	fmt.Println(meta["progressToken"], meta["traceparent"])
	// Output:
	// p1 00-00000000000000000000000000000001-0000000000000002-01
}

// A client that uses no other propagator than baggage sends no traceparent.
func ExampleOptions() {
	member, _ := baggage.NewMember("tenant", "7")
	bag, _ := baggage.New(member)
	ctx := baggage.ContextWithBaggage(context.Background(), bag)
	fmt.Println(oteltimeout.Inject(ctx, nil, oteltimeout.Options{Propagator: propagation.Baggage{}}))
	// Output:
	// map[baggage:tenant=7]
}

// A server's instrumentation goes around the limits. Its span has the route and the status, and how
// the handler was stopped.
func ExampleWatch_http() {
	spans := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	stop, err := oteltimeout.Watch(oteltimeout.Options{TracerProvider: tracers})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()

	mux := http.NewServeMux()
	mux.HandleFunc("GET /export/{id}", func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done() // stuck
	})
	limits := timeout.Config{Idle: 50 * time.Millisecond}
	handler := otelhttp.NewHandler(&httptimeout.Handler{Handler: mux, Limits: &limits}, "", otelhttp.WithTracerProvider(tracers))
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/export/7", nil))

	for _, s := range spans.GetSpans() {
		fmt.Println(s.Name)
		for _, a := range s.Attributes {
			switch a.Key {
			case "http.response.status_code", "error.type":
				fmt.Println(a.Key, a.Value.String())
			}
		}
	}
	// Unordered output:
	// GET /export/{id}
	// error.type idle_timeout
	// http.response.status_code 503
}
