package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/oteltimeout"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
)

func TestMain(m *testing.M) { harness.Main(m, nil, harness.Options{}) }

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		begun := time.Now()
		if err := run(t.Context(), &out); err != nil || time.Since(begun) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		if d := cmp.Diff(`ask for search (client)
  tools/call search (server)
    query the index (internal)
ask for stuck (client)
  tools/call stuck (server) idle_timeout
    wait for a lock (internal)
gen_ai_execute_tool_duration_seconds_count{gen_ai_tool_name="search"} 1
gen_ai_execute_tool_duration_seconds_count{error_type="idle_timeout",gen_ai_tool_name="stuck"} 1
mcp_server_operation_duration_seconds_count{gen_ai_operation_name="execute_tool",gen_ai_tool_name="search",mcp_method_name="tools/call"} 1
mcp_server_operation_duration_seconds_count{error_type="idle_timeout",gen_ai_operation_name="execute_tool",gen_ai_tool_name="stuck",mcp_method_name="tools/call"} 1
tooldeadline_execution_longest_silence_seconds_count{gen_ai_tool_name="search"} 1
tooldeadline_execution_longest_silence_seconds_count{error_type="idle_timeout",gen_ai_tool_name="stuck"} 1
tooldeadline_execution_running{gen_ai_tool_name="search"} 0
tooldeadline_execution_running{gen_ai_tool_name="stuck"} 0
`, out.String()); d != "" {
			t.Error(d)
		}
	})
}

// One trace runs from the client to what the tool does, over HTTP as well, where the server's
// span links the one of the request that it came in.
func TestOneTraceOverHTTP(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	stop, err := oteltimeout.Watch(oteltimeout.Options{TracerProvider: tracers})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	s := newServer(tracers.Tracer("server"))
	handler := mcpsdk.WrapHTTP(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	web := httptest.NewServer(handler)
	defer web.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: web.URL, HTTPClient: &http.Client{Transport: transport}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := call(t.Context(), tracers.Tracer("client"), session, "search")
	if err != nil || res.IsError {
		t.Fatalf("%v, %v", res, err)
	}
	sessionID := session.ID()
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	for _, s := range spans.GetSpans() {
		got := map[string]string{}
		for _, a := range s.Attributes {
			got[string(a.Key)] = a.Value.String()
		}
		if s.Name == "tools/call search" && (sessionID == "" || got["mcp.session.id"] != sessionID || got["jsonrpc.request.id"] == "") {
			t.Errorf("session %q, attributes %v", sessionID, got)
		}
	}

	ids, parents := map[trace.SpanID]string{}, map[string]string{}
	traces := map[trace.TraceID]bool{}
	for _, s := range spans.GetSpans() {
		ids[s.SpanContext.SpanID()], traces[s.SpanContext.TraceID()] = s.Name, true
	}
	for _, s := range spans.GetSpans() {
		parents[s.Name] = ids[s.Parent.SpanID()]
	}
	if diff := cmp.Diff(map[string]string{
		"ask for search": "", "tools/call search": "ask for search", "query the index": "tools/call search",
	}, parents); diff != "" || len(traces) != 1 {
		t.Errorf("%d traces (-want +got):\n%s", len(traces), diff)
	}
}
