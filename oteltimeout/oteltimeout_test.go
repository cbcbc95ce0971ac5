package oteltimeout_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/oteltimeout"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A collector has what was reported.
type collector struct {
	t       *testing.T
	spans   *tracetest.InMemoryExporter
	tracers *sdktrace.TracerProvider
	reader  *sdkmetric.ManualReader
	options oteltimeout.Options
}

func collect(t *testing.T) *collector {
	c := &collector{t: t, spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	c.tracers = sdktrace.NewTracerProvider(sdktrace.WithSyncer(c.spans))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(c.reader))
	c.options = oteltimeout.Options{TracerProvider: c.tracers, MeterProvider: meters}
	t.Cleanup(func() {
		_ = c.tracers.Shutdown(context.Background())
		_ = meters.Shutdown(context.Background())
	})
	return c
}

// watch watches until the test ends.
func watch(t *testing.T) *collector {
	c := collect(t)
	stop, err := oteltimeout.Watch(c.options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return c
}

// only is the one span that there is.
func (c *collector) only() tracetest.SpanStub {
	c.t.Helper()
	all := c.spans.GetSpans()
	if len(all) != 1 {
		c.t.Fatalf("%d spans, want 1", len(all))
	}
	return all[0]
}

func attributesOf(all []attribute.KeyValue) map[string]any {
	m := map[string]any{}
	for _, a := range all {
		m[string(a.Key)] = a.Value.AsInterface()
	}
	return m
}

func eventsOf(s tracetest.SpanStub) (names []string) {
	for _, e := range s.Events {
		names = append(names, e.Name)
	}
	return names
}

func (c *collector) metrics() map[string]metricdata.Metrics {
	c.t.Helper()
	var all metricdata.ResourceMetrics
	if err := c.reader.Collect(context.Background(), &all); err != nil {
		c.t.Fatal(err)
	}
	m := map[string]metricdata.Metrics{}
	for _, s := range all.ScopeMetrics {
		for _, one := range s.Metrics {
			m[one.Name] = one
		}
	}
	return m
}

// A point is what a metric has for one set of attributes.
type point struct {
	Attributes map[string]any
	Count      uint64 // of a histogram
	Sum        float64
	Bounds     []float64
}

func (c *collector) points(name string) (all []point) {
	c.t.Helper()
	switch data := c.metrics()[name].Data.(type) {
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			all = append(all, point{attributesOf(p.Attributes.ToSlice()), p.Count, p.Sum, p.Bounds})
		}
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			all = append(all, point{Attributes: attributesOf(p.Attributes.ToSlice()), Sum: float64(p.Value)})
		}
	case nil:
	default:
		c.t.Fatalf("%s is a %T", name, data)
	}
	return all
}

var limits = timeout.Config{Total: time.Minute, Idle: 10 * time.Second, Grace: 2 * time.Second}

// What each outcome is called, by the span and by the metrics alike, and how long it took.
func TestOutcomes(t *testing.T) {
	boom := errors.New("boom")
	wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	step := func(fn func(context.Context) error) func(context.Context) error { // it has no name, and no span
		return func(ctx context.Context) error {
			return timeout.Run(ctx, fn, timeout.Config{Idle: time.Second, Grace: time.Second}, timeout.WithRecover())
		}
	}
	const stepText = "No progress for 1s (idle timeout). Tool should call heartbeat() during long work."
	for _, tc := range []struct {
		name   string
		tool   func(context.Context) error
		class  string // error.type
		text   string
		took   float64
		silent float64
		events []string
	}{
		{"success", func(context.Context) error { time.Sleep(3 * time.Second); return nil }, "", "", 3, 3, nil},
		{"a nanosecond before the limit", func(context.Context) error { time.Sleep(10*time.Second - 1); return nil }, "", "", 9.999999999, 9.999999999, []string{"tooldeadline.near_idle"}},
		{"idle", wait, "idle_timeout", "No progress for 10s (idle timeout). Tool should call heartbeat() during long work.", 10, 10, []string{"tooldeadline.near_idle"}},
		{"total", func(ctx context.Context) error {
			return heartbeat.Keep(ctx, time.Second, wait)
		}, "total_timeout", "Tool exceeded wall-clock limit of 60s.", 60, 1, nil},
		{"aborted", func(ctx context.Context) error {
			timeout.FromContext(ctx).Abort(boom)
			return wait(ctx)
		}, "aborted", "Tool was aborted: boom", 0, 0, nil},
		{"panic", func(context.Context) error { panic("boom") }, "panic", "panic: boom", 0, 0, nil},
		{"panic with another's timeout", func(ctx context.Context) error { panic(step(wait)(ctx)) }, "panic", "panic: " + stepText, 1, 1, nil},
		{"panic after the limit", func(ctx context.Context) error { <-ctx.Done(); panic("boom") }, "idle_timeout", "No progress for 10s (idle timeout). Tool should call heartbeat() during long work.", 10, 10, []string{"tooldeadline.near_idle"}},
		{"goexit", func(context.Context) error { runtime.Goexit(); return nil }, "goexit", "timeout: the function called runtime.Goexit", 0, 0, nil},
		{"the tool's own", func(context.Context) error { return boom }, "tool_error", "boom", 0, 0, nil},
		{"another's timeout", step(wait), "tool_error", stepText, 1, 1, nil},
		{"another's timeout, wrapped", func(ctx context.Context) error { return fmt.Errorf("step: %w", step(wait)(ctx)) }, "tool_error", "step: " + stepText, 1, 1, nil},
		{"another's panic", step(func(context.Context) error { panic("boom") }), "tool_error", "panic: boom", 0, 0, nil},
		{"another's goexit", step(func(context.Context) error { runtime.Goexit(); return nil }), "tool_error", "timeout: the function called runtime.Goexit", 0, 0, nil},
		{"another's abort, after the limit", func(ctx context.Context) error {
			return timeout.Run(ctx, wait, timeout.Config{})
		}, "idle_timeout", "No progress for 10s (idle timeout). Tool should call heartbeat() during long work.", 10, 10, []string{"tooldeadline.near_idle"}},
		{"an error that panics", func(context.Context) error { return (*badError)(nil) }, "tool_error", "*oteltimeout_test.badError", 0, 0, nil},
		{"abandoned", func(context.Context) error { time.Sleep(time.Hour); return nil }, "idle_timeout", "No progress for 10s (idle timeout). Tool should call heartbeat() during long work.", 12, 10, []string{"tooldeadline.near_idle", "tooldeadline.abandoned"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := watch(t)
				_ = timeout.Run(t.Context(), tc.tool, limits, timeout.WithName("search"), timeout.WithRecover())
				synctest.Wait()

				span := c.only()
				if span.Name != "execute_tool search" || span.SpanKind != trace.SpanKindInternal {
					t.Errorf("%q, %v", span.Name, span.SpanKind)
				}
				want := map[string]any{
					"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search",
					"tooldeadline.limit.total": 60.0, "tooldeadline.limit.idle": 10.0,
					"tooldeadline.longest_silence": tc.silent,
				}
				status := sdktrace.Status{}
				measured := map[string]any{"gen_ai.tool.name": "search"}
				if tc.class != "" {
					want["error.type"], measured["error.type"] = tc.class, tc.class
					status = sdktrace.Status{Code: codes.Error, Description: tc.text}
				}
				got := attributesOf(span.Attributes)
				if _, ok := got["tooldeadline.beats"].(int64); !ok {
					t.Error("no beats")
				}
				delete(got, "tooldeadline.beats")
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("attributes (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(status, span.Status); diff != "" {
					t.Errorf("status (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tc.events, eventsOf(span)); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				if took := span.EndTime.Sub(span.StartTime).Seconds(); took != tc.took {
					t.Errorf("the span took %v, want %v", took, tc.took)
				}

				one := func(sum float64, bounds []float64) []point {
					return []point{{Attributes: measured, Count: 1, Sum: sum, Bounds: bounds}}
				}
				if diff := cmp.Diff(one(tc.took, toolBuckets), c.points("gen_ai.execute_tool.duration")); diff != "" {
					t.Errorf("duration (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(one(tc.silent, mcpBuckets), c.points("tooldeadline.execution.longest_silence")); diff != "" {
					t.Errorf("silence (-want +got):\n%s", diff)
				}
				if n := c.points("mcp.server.operation.duration"); n != nil {
					t.Errorf("no server has called: %v", n)
				}
				tool := map[string]any{"gen_ai.tool.name": "search"}
				if diff := cmp.Diff([]point{{Attributes: tool}}, c.points("tooldeadline.execution.running")); diff != "" {
					t.Errorf("running (-want +got):\n%s", diff)
				}
				var abandoned []point
				if tc.name == "abandoned" {
					abandoned = []point{{Attributes: tool, Sum: 1}}
				}
				if diff := cmp.Diff(abandoned, c.points("tooldeadline.execution.abandoned")); diff != "" {
					t.Errorf("abandoned (-want +got):\n%s", diff)
				}
				time.Sleep(2 * time.Hour) // the abandoned one returns
			})
		})
	}
}

type badError struct{ text string }

func (e *badError) Error() string { return e.text }

// A hostileError blocks until the test is over, or has a text of 10 MiB.
type hostileError struct{ release chan struct{} }

func (e *hostileError) Error() string {
	if e.release != nil {
		<-e.release
	}
	return strings.Repeat("x", 10<<20)
}

// SPEC 3.25: the text of an error has a bound of size and of time.
func TestHostileErrors(t *testing.T) {
	for name, release := range map[string]chan struct{}{"huge": nil, "block": make(chan struct{})} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := watch(t)
				if release != nil {
					release = make(chan struct{})
					defer close(release)
				}
				begun := time.Now()
				_ = timeout.Run(t.Context(), func(context.Context) error { return &hostileError{release} }, timeout.Config{Total: time.Minute, Grace: 5 * time.Second}, timeout.WithName("search"))
				if text := c.only().Status.Description; len(text) > 65<<10 || text == "" || time.Since(begun) > time.Second {
					t.Errorf("%d bytes after %v", len(text), time.Since(begun))
				}
			})
		})
	}
}

// The conventions' own.
var (
	toolBuckets = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	mcpBuckets  = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
)

// The conventions' kinds and units.
func TestInstruments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := watch(t)
		_, _ = toolcall.Do(t.Context(), &toolcall.Settings{Policy: &policy.Policy{Default: &timeout.Config{Idle: 1, Grace: 1}}},
			toolcall.Call{Tool: "scan"}, func(context.Context) (int, error) { time.Sleep(time.Second); return 0, nil })
		_ = timeout.Run(t.Context(), func(context.Context) error { time.Sleep(time.Minute); return nil },
			limits, timeout.WithName("scan"), timeout.WithObserveOnly())
		_ = timeout.Run(t.Context(), func(context.Context) error { return nil }, timeout.WithName("git"), timeout.WithOperation(timeout.OperationCommand))
		got := map[string]string{}
		for name, m := range c.metrics() {
			switch d := m.Data.(type) {
			case metricdata.Histogram[float64]:
				got[name] = "histogram, " + m.Unit
			case metricdata.Sum[int64]:
				got[name] = "sum, " + m.Unit
				if d.IsMonotonic {
					got[name] = "counter, " + m.Unit
				}
			}
			if m.Description == "" {
				t.Errorf("%s has no description", name)
			}
		}
		if diff := cmp.Diff(map[string]string{
			"gen_ai.execute_tool.duration":           "histogram, s",
			"mcp.server.operation.duration":          "histogram, s",
			"tooldeadline.command.duration":          "histogram, s",
			"tooldeadline.execution.longest_silence": "histogram, s",
			"tooldeadline.execution.running":         "sum, {execution}",
			"tooldeadline.execution.abandoned":       "counter, {execution}",
			"tooldeadline.execution.would_stop":      "counter, {execution}",
		}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		time.Sleep(time.Minute)
	})
}

// While it runs, it counts as running, and its span is the parent of what the tool begins.
func TestWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := watch(t)
		tracer := c.tracers.Tracer("test")
		ctx, outer := tracer.Start(t.Context(), "agent")
		_ = timeout.Run(ctx, func(ctx context.Context) error {
			_, span := tracer.Start(ctx, "query")
			defer span.End()
			return timeout.Run(ctx, func(ctx context.Context) error {
				_, span := tracer.Start(ctx, "inner query")
				span.End()
				if n := c.points("tooldeadline.execution.running"); len(n) != 2 || n[0].Sum != 1 || n[1].Sum != 1 {
					t.Errorf("running: %v", n)
				}
				return timeout.Run(ctx, func(ctx context.Context) error {
					_, span := tracer.Start(ctx, "unnamed")
					span.End()
					return nil
				})
			}, timeout.WithName("parse"))
		}, timeout.WithName("search"))
		outer.End()

		byID, parents := map[trace.SpanID]string{}, map[string]string{}
		for _, s := range c.spans.GetSpans() {
			byID[s.SpanContext.SpanID()] = s.Name
			if s.SpanContext.TraceID() != outer.SpanContext().TraceID() {
				t.Errorf("%s is of another trace", s.Name)
			}
		}
		for _, s := range c.spans.GetSpans() {
			parents[s.Name] = byID[s.Parent.SpanID()]
		}
		if diff := cmp.Diff(map[string]string{
			"agent": "", "execute_tool search": "agent", "query": "execute_tool search",
			"execute_tool parse": "execute_tool search", "inner query": "execute_tool parse", "unnamed": "execute_tool parse",
		}, parents); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// A limit that is only observed is an event, and no failure.
func TestObserveOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := watch(t)
		err := timeout.Run(t.Context(), func(context.Context) error { time.Sleep(2 * time.Minute); return nil },
			limits, timeout.WithName("search"), timeout.WithObserveOnly())
		synctest.Wait()
		span := c.only()
		if err != nil || span.Status.Code != codes.Unset {
			t.Errorf("%v, %v", err, span.Status)
		}
		var would []any
		for _, e := range span.Events {
			if e.Name == "tooldeadline.would_stop" {
				would = append(would, attributesOf(e.Attributes)["error.type"])
			}
		}
		if diff := cmp.Diff([]any{"idle_timeout", "total_timeout"}, would); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}

		// A run that nothing would have stopped is not counted.
		if err := timeout.Run(t.Context(), func(context.Context) error { return nil },
			limits, timeout.WithName("search"), timeout.WithObserveOnly()); err != nil {
			t.Error(err)
		}
		want := []point{{Attributes: map[string]any{"gen_ai.tool.name": "search", "error.type": "idle_timeout"}, Sum: 1}}
		if diff := cmp.Diff(want, c.points("tooldeadline.execution.would_stop")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// A call that a server has received goes on from _meta, and links the span that was there.
func TestServer(t *testing.T) {
	for _, tc := range []struct {
		name    string
		meta    map[string]any
		ambient bool
		reads   propagation.TextMapPropagator
		remote  bool
		links   int
	}{
		{"nothing", nil, false, nil, false, 0},
		{"only an ambient span", nil, true, nil, false, 0},
		{"traceparent", map[string]any{"traceparent": parent}, false, nil, true, 0},
		{"traceparent and an ambient span", map[string]any{"traceparent": parent}, true, nil, true, 1},
		{"not a string", map[string]any{"traceparent": 7.0}, true, nil, false, 0},
		{"malformed", map[string]any{"traceparent": "00-zz-1-1"}, true, nil, false, 0},
		{"not trusted", map[string]any{"traceparent": parent}, true, propagation.NewCompositeTextMapPropagator(), false, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := collect(t)
				c.options.Propagator = tc.reads
				hooks, err := oteltimeout.Hooks(c.options)
				if err != nil {
					t.Fatal(err)
				}
				ctx, ambient := t.Context(), trace.SpanFromContext(t.Context())
				if tc.ambient {
					ctx, ambient = c.tracers.Tracer("test").Start(ctx, "POST /mcp")
				}
				_, _ = toolcall.Do(ctx, &toolcall.Settings{Limits: new(timeout.Config), Options: []timeout.Setting{timeout.WithHooks(hooks)}},
					toolcall.Call{Tool: "search", Meta: tc.meta, RequestID: "7", SessionID: "a session"},
					func(context.Context) (int, error) { time.Sleep(time.Second); return 0, errors.New("boom") })

				span := c.only()
				if span.Name != "tools/call search" || span.SpanKind != trace.SpanKindServer {
					t.Errorf("%q, %v", span.Name, span.SpanKind)
				}
				got := attributesOf(span.Attributes)
				delete(got, "tooldeadline.beats")
				if diff := cmp.Diff(map[string]any{
					"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search", "mcp.method.name": "tools/call",
					"jsonrpc.request.id": "7", "mcp.session.id": "a session", "error.type": "tool_error",
					"tooldeadline.longest_silence": 1.0,
				}, got); diff != "" {
					t.Errorf("attributes (-want +got):\n%s", diff)
				}
				if tc.remote != span.Parent.IsRemote() || tc.remote && span.SpanContext.TraceID().String() != parent[3:35] {
					t.Errorf("parent %v", span.Parent)
				}
				if !tc.remote && span.Parent.SpanID() != ambient.SpanContext().SpanID() {
					t.Errorf("parent %v, want the ambient span", span.Parent)
				}
				if len(span.Links) != tc.links || tc.links > 0 && !span.Links[0].SpanContext.Equal(ambient.SpanContext()) {
					t.Errorf("links %v", span.Links)
				}
				if diff := cmp.Diff([]point{{Attributes: map[string]any{
					"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool",
					"gen_ai.tool.name": "search", "error.type": "tool_error",
				}, Count: 1, Sum: 1, Bounds: mcpBuckets}}, c.points("mcp.server.operation.duration")); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// One call is reported once, though both a middleware and a handler supervise it. What else runs
// within it is reported by itself: another call of the session, a call of another session, a step.
func TestCallWithinCall(t *testing.T) {
	type fn = func(context.Context) error
	nothing := func(context.Context) error { return nil }
	call := func(session int, tool string, within fn) fn {
		return func(ctx context.Context) error {
			_, err := toolcall.Do(ctx, nil, toolcall.Call{Tool: tool, Session: session, Meta: map[string]any{"traceparent": parent}},
				func(ctx context.Context) (int, error) { return 0, within(ctx) })
			return err
		}
	}
	step := func(name string, within fn) fn {
		return func(ctx context.Context) error { return timeout.Run(ctx, within, timeout.WithName(name)) }
	}
	for name, tt := range map[string]struct {
		run  fn
		want []string // in the order in which they end
	}{
		"middleware and handler":  {call(1, "search", call(1, "search", nothing)), []string{"tools/call search"}},
		"of another session":      {call(1, "search", call(2, "search", nothing)), []string{"tools/call search", "tools/call search"}},
		"of another tool":         {call(1, "search", call(1, "read", nothing)), []string{"tools/call read", "tools/call search"}},
		"within a step":           {call(1, "search", step("parse", call(1, "search", nothing))), []string{"tools/call search", "execute_tool parse", "tools/call search"}},
		"within one with no name": {call(1, "search", step("", call(1, "search", nothing))), []string{"tools/call search", "tools/call search"}},
		"a step of the same name": {call(1, "search", step("search", nothing)), []string{"execute_tool search", "tools/call search"}},
		"a step around":           {step("search", call(1, "search", nothing)), []string{"tools/call search", "execute_tool search"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := watch(t)
				if err := tt.run(t.Context()); err != nil {
					t.Fatal(err)
				}
				var got []string
				var calls uint64
				for _, s := range c.spans.GetSpans() {
					got = append(got, s.Name)
					if s.SpanKind == trace.SpanKindServer {
						calls++
					}
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				var measured uint64
				for _, p := range c.points("mcp.server.operation.duration") {
					measured += p.Count
				}
				if measured != calls {
					t.Errorf("%d calls measured, want %d", measured, calls)
				}
				for _, p := range c.points("tooldeadline.execution.running") {
					if p.Sum != 0 {
						t.Errorf("%v", p)
					}
				}
			})
		})
	}
}

// A call that its handler's limits have stopped has failed by them, though those of the middleware
// around, of which the span is, have not fired: they get a result that says it.
func TestStopWithinCall(t *testing.T) {
	wait := func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }
	for name, tc := range map[string]struct {
		inner string
		after func(error) error
		want  any
	}{
		"the same call":              {"search", func(err error) error { return fmt.Errorf("result: %w", err) }, "idle_timeout"},
		"the same call, another try": {"search", func(error) error { return nil }, nil},
		"another call":               {"read", func(err error) error { return err }, "tool_error"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := watch(t)
				server := func(idle time.Duration) *toolcall.Settings {
					return &toolcall.Settings{Policy: &policy.Policy{Default: &timeout.Config{Idle: idle, Grace: time.Second}}}
				}
				_, _ = toolcall.Do(t.Context(), server(time.Minute), toolcall.Call{Tool: "search"}, func(ctx context.Context) (int, error) {
					n, err := toolcall.Do(ctx, server(time.Second), toolcall.Call{Tool: tc.inner}, wait)
					return n, tc.after(err)
				})
				for _, s := range c.spans.GetSpans() {
					if s.Name == "tools/call search" {
						if got := attributesOf(s.Attributes)["error.type"]; got != tc.want {
							t.Errorf("error.type is %v, want %v", got, tc.want)
						}
						return
					}
				}
				t.Error("no span")
			})
		})
	}
}

// SPEC 3.23: the span of an aborted call has the cause, as one word.
func TestCauseOfAbort(t *testing.T) {
	c := watch(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	_, _ = toolcall.Do(ctx, nil, toolcall.Call{Tool: "search"}, func(ctx context.Context) (int, error) {
		cancel(&toolcall.CancelledError{Reason: "Request timed out"})
		<-ctx.Done()
		return 0, ctx.Err()
	})
	if got := attributesOf(c.only().Attributes)["tooldeadline.abort.cause"]; got != "client_timeout" {
		t.Errorf("the cause is %v", got)
	}
}

// A client chooses the ids of its requests.
func TestLongRequestID(t *testing.T) {
	c := watch(t)
	_, _ = toolcall.Do(t.Context(), nil, toolcall.Call{Tool: "search", RequestID: strings.Repeat("7", 1<<20)},
		func(context.Context) (int, error) { return 0, nil })
	if got := attributesOf(c.only().Attributes)["jsonrpc.request.id"].(string); len(got) != 128 {
		t.Errorf("an id of %d bytes", len(got))
	}
}

// A stall of the process is an event of the span. Package timeout decides what a stall is: in a
// bubble no timer is late.
func TestStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := collect(t)
		hooks, err := oteltimeout.Hooks(c.options)
		if err != nil {
			t.Fatal(err)
		}
		_ = timeout.Run(t.Context(), func(ctx context.Context) error {
			hooks.Stalled(ctx, timeout.FromContext(ctx).Snapshot())
			return timeout.Run(ctx, func(ctx context.Context) error {
				hooks.Stalled(ctx, timeout.FromContext(ctx).Snapshot()) // it has no span
				return nil
			})
		}, timeout.WithName("search"), timeout.WithHooks(hooks))
		if diff := cmp.Diff([]string{"tooldeadline.stalled"}, eventsOf(c.only())); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// SPEC 3.20, 3.22: that an execution is closing is an event of its span, once, and of no other's.
func TestClosing(t *testing.T) {
	for name, tc := range map[string]struct {
		limits timeout.Config
		tool   func(context.Context)
		want   []string
	}{
		"the reserve":                     {timeout.Config{Total: 10 * time.Second, Reserve: 3 * time.Second}, func(context.Context) { time.Sleep(7 * time.Second) }, []string{"tooldeadline.closing"}},
		"a nanosecond before the reserve": {timeout.Config{Total: 10 * time.Second, Reserve: 3 * time.Second}, func(context.Context) { time.Sleep(7*time.Second - 1) }, nil},
		"from outside": {timeout.Config{}, func(ctx context.Context) {
			timeout.FromContext(ctx).BeginClosing()
			timeout.FromContext(ctx).BeginClosing()
		}, []string{"tooldeadline.closing"}},
		"a step": {timeout.Config{}, func(ctx context.Context) {
			_ = timeout.Run(ctx, func(ctx context.Context) error { timeout.FromContext(ctx).BeginClosing(); return nil })
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := watch(t)
				_ = timeout.Run(t.Context(), func(ctx context.Context) error {
					tc.tool(ctx)
					synctest.Wait()
					return nil
				}, tc.limits, timeout.WithName("search"))
				if diff := cmp.Diff(tc.want, eventsOf(c.only())); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A request is no tool; a function that runs within it may be one.
func TestClientIsNoTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := watch(t)
		client := request.New(&request.Options{Limits: &request.Limits{Timeout: time.Second}})
		_, _ = request.Do(t.Context(), client, request.Call{Method: "tools/call"}, func(ctx context.Context, _ string) (int, error) {
			return 0, timeout.Run(ctx, func(context.Context) error { return nil }, timeout.WithName("approve"))
		})
		_ = timeout.Run(t.Context(), func(context.Context) error { return nil })
		if s := c.only(); s.Name != "execute_tool approve" {
			t.Error(s.Name)
		}
	})
}

// Clients call tools that do not exist.
func TestCardinality(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := watch(t)
		run := func(name string) {
			_ = timeout.Run(t.Context(), func(context.Context) error { return nil }, timeout.WithName(name))
		}
		longest := strings.Repeat("é", 64)
		run(longest + "x")
		for i := range 499 {
			run("tool" + strconv.Itoa(i))
		}
		run(longest)
		run("one too many")
		run("tool7")
		spans, got := map[string]int{}, map[any]uint64{}
		for _, s := range c.spans.GetSpans() {
			spans[s.Name]++
			if name := attributesOf(s.Attributes)["gen_ai.tool.name"].(string); len(name) > 128 {
				t.Errorf("a name of %d bytes", len(name))
			}
		}
		for _, p := range c.points("gen_ai.execute_tool.duration") {
			got[p.Attributes["gen_ai.tool.name"]] = p.Count
		}
		if len(got) != 501 || got["_OTHER"] != 2 || got["tool7"] != 2 || got[longest] != 1 {
			t.Errorf("%d names, %d others, %d, %d", len(got), got["_OTHER"], got["tool7"], got[longest])
		}
		if len(spans) != 501 || spans["execute_tool _OTHER"] != 2 {
			t.Errorf("%d names of spans, %d others", len(spans), spans["execute_tool _OTHER"])
		}
	})
}

// A client's context arrives as it was sent, and nothing else of _meta is lost or changed.
func TestInject(t *testing.T) {
	c := collect(t)
	ctx, span := c.tracers.Tracer("test").Start(t.Context(), "agent")
	defer span.End()
	meta := map[string]any{"progressToken": 7.0}
	got := oteltimeout.Inject(ctx, meta, oteltimeout.Options{})
	sc := span.SpanContext()
	want := map[string]any{"progressToken": 7.0, "traceparent": "00-" + sc.TraceID().String() + "-" + sc.SpanID().String() + "-01"}
	if diff := cmp.Diff(want, got); diff != "" || len(meta) != 1 {
		t.Errorf("%v (-want +got):\n%s", meta, diff)
	}
	if got := oteltimeout.Inject(context.Background(), nil, oteltimeout.Options{}); got == nil || len(got) != 0 {
		t.Errorf("without a span: %v", got)
	}
}
