// Telemetry is an MCP client and a server in one program, observed with OpenTelemetry: one trace
// leads from the client's request to the work of the tool, and Prometheus scrapes the metrics.
//
//	go run ./examples/telemetry
//
// It prints the spans of two calls, one of which is stuck and stopped, and the metrics as
// Prometheus would scrape them. Your own program would export the spans to a collector, and
// serve the metrics with promhttp.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/tooldeadline/tooldeadline/oteltimeout"
	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
)

func main() {
	if err := run(context.Background(), stdio.New(os.Stdout)); err != nil {
		fmt.Fprintln(stdio.New(os.Stderr), "telemetry:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	spans := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo())
	if err != nil {
		return err
	}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))

	stop, err := oteltimeout.Watch(oteltimeout.Options{TracerProvider: tracers, MeterProvider: meters})
	if err != nil {
		return err
	}
	defer stop()

	near, far := mcp.NewInMemoryTransports()
	serving, err := newServer(tracers.Tracer("server")).Connect(ctx, far, nil)
	if err != nil {
		return err
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "telemetry", Version: "1"}, nil).Connect(ctx, near, nil)
	if err != nil {
		return err
	}
	tracer := tracers.Tracer("client")
	for _, tool := range []string{"search", "stuck"} {
		if _, err := call(ctx, tracer, session, tool); err != nil {
			return err
		}
	}
	if err := session.Close(); err != nil {
		return err
	}
	_ = serving.Wait() // the error only says that the client has disconnected
	printSpans(out, spans.GetSpans())
	return printMetrics(out, registry)
}

// call calls a tool from a client under a span, and sends the span's context to the server.
func call(ctx context.Context, tracer trace.Tracer, session *mcp.ClientSession, tool string) (*mcp.CallToolResult, error) {
	ctx, span := tracer.Start(ctx, "ask for "+tool, trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	return session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Meta: oteltimeout.Inject(ctx, nil, oteltimeout.Options{})})
}

func newServer(tracer trace.Tracer) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "telemetry", Version: "1"}, nil)
	mcpsdk.Install(s, &mcpsdk.Options{Limits: &timeout.Config{Total: time.Minute, Idle: 2 * time.Second}})
	mcp.AddTool(s, &mcp.Tool{Name: "search"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		_, span := tracer.Start(ctx, "query the index") // a child of the tool's span
		defer span.End()
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "found"}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "stuck"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		_, span := tracer.Start(ctx, "wait for a lock")
		defer span.End()
		<-ctx.Done()
		return nil, nil, ctx.Err()
	})
	return s
}

// printSpans prints each trace as an indented tree.
func printSpans(out io.Writer, all tracetest.SpanStubs) {
	children := map[trace.SpanID]tracetest.SpanStubs{}
	for _, s := range all {
		children[s.Parent.SpanID()] = append(children[s.Parent.SpanID()], s)
	}
	var show func(parent trace.SpanID, indent string)
	show = func(parent trace.SpanID, indent string) {
		for _, s := range children[parent] {
			fmt.Fprintf(out, "%s%s (%v)%s\n", indent, s.Name, s.SpanKind, failureOf(s))
			show(s.SpanContext.SpanID(), indent+"  ")
		}
	}
	show(trace.SpanID{}, "")
}

func failureOf(s tracetest.SpanStub) string {
	for _, a := range s.Attributes {
		if a.Key == "error.type" {
			return " " + a.Value.AsString()
		}
	}
	return ""
}

// printMetrics prints the number of values of each histogram, and the numbers of running executions.
func printMetrics(out io.Writer, from prometheus.Gatherer) error {
	families, err := from.Gather()
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			return err
		}
	}
	for line := range strings.Lines(text.String()) {
		if strings.Contains(line, "_count{") || strings.Contains(line, "_running{") {
			fmt.Fprint(out, line)
		}
	}
	return nil
}
