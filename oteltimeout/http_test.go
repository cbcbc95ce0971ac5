package oteltimeout_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/httptimeout"
)

var handlerLimits = timeout.Config{Total: time.Minute, Idle: time.Second, Grace: 5 * time.Second} // in a fifth of which NearIdle must come

// routes is what the handlers of these tests do.
func routes(wrap func(http.HandlerFunc) http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /fast/{id}", wrap(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fast") }))
	mux.Handle("GET /stuck/{id}", wrap(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	mux.Handle("GET /cut/{id}", wrap(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "half of it")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	return mux
}

// A request is a request: its span and its metrics are those of the HTTP instrumentation around it,
// wherever the limits are, and the span says what became of it.
func TestHandler(t *testing.T) {
	mux := routes(func(h http.HandlerFunc) http.Handler { return h })
	each := routes(func(h http.HandlerFunc) http.Handler { return &httptimeout.Handler{Handler: h, Limits: &handlerLimits} })
	for _, around := range []struct {
		name    string
		handler http.Handler
		whole   bool
	}{
		{"around a mux", &httptimeout.Handler{Handler: mux, Limits: &handlerLimits}, true},
		{"around each route", each, false},
	} {
		for _, tc := range []struct {
			route  string
			status any
			class  any // error.type
			code   codes.Code
			text   string
			events []string
		}{
			{"/fast/{id}", int64(200), nil, codes.Unset, "", nil},
			{"/stuck/{id}", int64(503), "idle_timeout", codes.Error, "", []string{"tooldeadline.near_idle"}},
			// A response that is cut is a panic to the instrumentation, which then says nothing.
			{"/cut/{id}", nil, "idle_timeout", codes.Error, "idle", []string{"tooldeadline.near_idle", "exception"}},
		} {
			t.Run(around.name+tc.route, func(t *testing.T) {
				c := watch(t)
				reader := sdkmetric.NewManualReader()
				meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
				s := httptest.NewUnstartedServer(otelhttp.NewHandler(around.handler, "",
					otelhttp.WithTracerProvider(c.tracers), otelhttp.WithMeterProvider(meters), otelhttp.WithPropagators(propagation.TraceContext{})))
				s.Config.ErrorLog = log.New(io.Discard, "", 0)
				s.Start()
				r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+strings.ReplaceAll(tc.route, "{id}", "7"), nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Traceparent", parent)
				if res, err := s.Client().Do(r); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
				}
				s.Close() // waits for the handler

				span := c.only()
				if span.SpanKind != trace.SpanKindServer || span.SpanContext.TraceID().String() != parent[3:35] {
					t.Errorf("%v in trace %v", span.SpanKind, span.SpanContext.TraceID())
				}
				got := attributesOf(span.Attributes)
				if tc.status != nil && span.Name != "GET "+tc.route {
					t.Errorf("it is called %q", span.Name)
				}
				if diff := cmp.Diff([]any{tc.status, tc.class, 1.0, 60.0}, []any{got["http.response.status_code"], got["error.type"],
					got["tooldeadline.limit.idle"], got["tooldeadline.limit.total"]}); diff != "" {
					t.Errorf("attributes (-want +got):\n%s", diff)
				}
				if gap, ok := got["tooldeadline.longest_silence"].(float64); !ok || tc.class != nil && gap < 1 {
					t.Errorf("the longest silence is %v", got["tooldeadline.longest_silence"])
				}
				if span.Status.Code != tc.code || !strings.Contains(span.Status.Description, tc.text) {
					t.Errorf("status %v", span.Status)
				}
				if diff := cmp.Diff(tc.events, eventsOf(span)); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}

				if p := c.points("gen_ai.execute_tool.duration"); p != nil {
					t.Errorf("it is measured as a tool: %v", p)
				}
				want := map[string]any{}
				if !around.whole {
					want["http.request.method"], want["http.route"] = "GET", tc.route
				}
				if tc.class != nil {
					want["error.type"] = tc.class
				}
				ours := c.points("tooldeadline.execution.longest_silence")
				if len(ours) != 1 || ours[0].Count != 1 {
					t.Fatalf("our metrics: %v", ours)
				}
				if diff := cmp.Diff(want, ours[0].Attributes); diff != "" {
					t.Errorf("our metrics (-want +got):\n%s", diff)
				}
				var theirs metricdata.ResourceMetrics
				if err := reader.Collect(t.Context(), &theirs); err != nil {
					t.Fatal(err)
				}
				if route := routeOf(theirs); tc.status != nil && route != tc.route {
					t.Errorf("http.server.request.duration has the route %q", route)
				}
			})
		}
	}
}

// routeOf is the route in the instrumentation's metric.
func routeOf(all metricdata.ResourceMetrics) any {
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			if h, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == "http.server.request.duration" && len(h.DataPoints) == 1 {
				return attributesOf(h.DataPoints[0].Attributes.ToSlice())["http.route"]
			}
		}
	}
	return nil
}

// Without an instrumentation there is no span of a request, and nothing fails.
func TestHandlerAlone(t *testing.T) {
	c := watch(t)
	h := &httptimeout.Handler{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), Limits: new(timeout.Config)}
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	if all := c.spans.GetSpans(); len(all) != 0 {
		t.Errorf("%d spans", len(all))
	}
	if p := c.points("tooldeadline.execution.running"); len(p) != 1 || p[0].Sum != 0 {
		t.Errorf("running: %v", p)
	}
}
