package mcpsdk_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// What the documentation says of a client that goes away without WrapHTTP: the limits stop the tool, unless the SDK's own
// option is set. With a session, the SDK's client waits for the tool with a lock held, which stops the time of a bubble.
func TestDisconnectWithoutWrapHTTP(t *testing.T) {
	for _, tt := range []struct {
		name    string
		version string
		options *mcp.StreamableHTTPOptions // nil is SSE
		code    int
	}{
		{"SSE", "", nil, timeout.ExitTimeout},
		{"stateless", protocol2025, &mcp.StreamableHTTPOptions{Stateless: true}, timeout.ExitTimeout},
		{protocol2026, protocol2026, &mcp.StreamableHTTPOptions{Stateless: true}, timeout.ExitTimeout},
		{protocol2026 + ", propagated", protocol2026, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}, timeout.ExitAborted},
	} {
		sdktest.Bubble(t, tt.name, func(t *testing.T) {
			ended := make(chan timeout.Snapshot, 1)
			s := newTestServer()
			addHang(s, "hang")
			mcpsdk.Install(s, &mcpsdk.Options{Limits: &timeout.Config{Total: time.Minute}, Hooks: timeout.Hooks{
				Finished: func(_ context.Context, s timeout.Snapshot) { ended <- s },
			}})
			var transport mcp.Transport
			var n *sdktest.Net
			if tt.options == nil {
				n = sdktest.NewNet(mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil))
				transport = &mcp.SSEClientTransport{Endpoint: "http://localhost/", HTTPClient: n.Client()}
			} else {
				n = sdktest.NewNet(streamable(t, s, tt.options))
				transport = &mcp.StreamableClientTransport{Endpoint: "http://localhost/", HTTPClient: n.Client(), MaxRetries: -1}
			}
			cs, err := newTestClient(nil).Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: tt.version})
			if err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "hang"}) }()
			synctest.Wait()
			n.Cut()
			if s := <-ended; timeout.ExitCode(s.Err) != tt.code {
				t.Errorf("ended by %v, want exit code %d", s.Err, tt.code)
			}
			_ = cs.Close()
			n.End()
			time.Sleep(time.Hour)
		})
	}
}

// A tool may be a client of a server in memory, whose calls are others than its own, with progress, an end and an id of
// their own.
func TestServerInsideATool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var within *toolcall.Call
		inner, outer := newTestServer(), newTestServer()
		addTool(inner, "report", func(ctx context.Context, _ func(float64, string)) error {
			within = toolcall.FromContext(ctx)
			progress.Report(ctx, progress.Update{Progress: 1})
			return sdktest.Sleep(ctx, time.Second)
		})
		mcpsdk.Install(inner, nil)
		told := make(chan any, 9)
		addTool(outer, "gateway", func(ctx context.Context, _ func(float64, string)) error {
			serverEnd, clientEnd := mcp.NewInMemoryTransports()
			ss, err := inner.Connect(ctx, serverEnd, nil)
			if err != nil {
				return err
			}
			defer ss.Wait()
			cs, err := newTestClient(&mcp.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) { told <- req.Params.ProgressToken },
			}).Connect(ctx, clientEnd, nil)
			if err != nil {
				return err
			}
			defer cs.Close()
			p := &mcp.CallToolParams{Name: "report"}
			p.SetProgressToken("inner")
			if own := toolcall.FromContext(ctx); own.RequestID == "" || own.SessionID == "" {
				t.Error("no id of the call or of its session")
			}
			_, err = cs.CallTool(ctx, p)
			return err
		})
		mcpsdk.Install(outer, nil)
		n := overNet(t, mcpsdk.WrapHTTP(streamable(t, outer, nil)))
		cs := connectTo(t, newTestClient(nil), &mcp.StreamableClientTransport{Endpoint: "http://localhost/", HTTPClient: n, MaxRetries: -1}, protocol2025)
		for range 5 { // so that the ids differ
			_ = cs.Ping(t.Context(), nil)
		}
		if res := call(t, cs, "gateway", "outer"); res.IsError || <-told != "inner" || within.SessionID != "" || within.RequestID == "" || within.RequestID > "5" {
			t.Error(texts(res), within)
		}
	})
}

const (
	large     = "9007199254740993"
	tokenCopy = "io.github.tooldeadline/progressToken"
	taskCopy  = "io.github.tooldeadline/task"
)

// through returns a body as a handler within WrapHTTP reads it.
func through(body io.Reader, header http.Header, read func(io.Reader) io.Reader) (string, error) {
	var got []byte
	var err error
	r := httptest.NewRequest("POST", "/", body)
	r.Header = header
	mcpsdk.WrapHTTP(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got, err = io.ReadAll(read(r.Body)) })).ServeHTTP(httptest.NewRecorder(), r)
	return string(got), err
}

func whole(r io.Reader) io.Reader { return r }

// decoded is JSON with its numbers as they are written.
func decoded(t *testing.T, text string) (v any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %q", err, text)
	}
	return v
}

// withoutCopies takes the copies out of a message or a batch, each of which must be one of what is there, and counts them.
func withoutCopies(t *testing.T, v any) (tokens, tasks int) {
	all, ok := v.([]any)
	if !ok {
		all = []any{v}
	}
	for _, m := range all {
		message, _ := m.(map[string]any)
		params, _ := message["params"].(map[string]any)
		meta, _ := params["_meta"].(map[string]any)
		if copied, ok := meta[tokenCopy]; ok {
			if tokens++; copied != fmt.Sprint(meta["progressToken"]) {
				t.Errorf("no copy: %v", m)
			}
			delete(meta, tokenCopy)
		}
		if copied, ok := meta[taskCopy]; ok {
			if tasks++; !reflect.DeepEqual(copied, params["task"]) {
				t.Errorf("no copy: %v", m)
			}
			delete(meta, taskCopy)
		}
		if len(meta) == 0 {
			delete(params, "_meta") // it may have been made for a copy
		}
	}
	return tokens, tasks
}

// SPEC 7.1: a large token is copied, and the "task" of a call, of which the SDK knows nothing: where they belong, and
// nowhere else, whatever the pieces in which a body comes and is read.
func TestBody(t *testing.T) {
	long := strings.Repeat("x", 1024)
	// There is a copy of what stands before each ^, and of the task before each |.
	for _, want := range []string{
		``, `progressToken`, `1 "progressToken"`, `[null,{"params":null},"progressToken"]`, `{"params":{"_meta":{"progressToken":1}}}`,
		`{"a":"\"","params":{"a":[{}],"_meta":{"a":{"b":{}},"progressToken":N^}}}`,
		` {"params" : {"_meta" : {"progressToken" : N^ } } }`,
		`{"params":{"_meta":{}},"params":{"_meta":{"progressToken":N}}}`, // in which readers may find different tokens
		`[{"params":{"_meta":{}}},{"params":{"_meta":{"progressToken":N^}}}]`,
		`[1,[],{"params":{"_meta":{"progressToken":N^,"x":[{"progressToken":N}]}}},{"params":{"_meta":{"progressToken":N^}}}]`,
		`[[{"params":{"_meta":{"progressToken":N}}}]]`,
		`[{"params":null},{"x":{"_meta":{"progressToken":N}}}]`,
		`{"params":{"_meta":{},"a":{"progressToken":N}}}`,
		`{"PARAMS":{"_meta":{"progressToken":N}}}`,
		`{"a":{"params":{"_meta":{"progressToken":N}}}}`,
		`{"params":{"a":{"_meta":{"progressToken":N}}}}`,
		`{"params":{"_meta":{"a":{"progressToken":N}}}}`,
		`{"params":{"_meta":{},"progressToken":N}}`,
		`{"params":{"a":1},"_meta":{"progressToken":N}}`,
		`[{"params":{"_meta":null}},{"progressToken":N}]`,
		`{"params":[{"_meta":{"progressToken":N}}]}`,
		`{"params":{"_meta":[{"progressToken":N}]}}`,
		`{"params":{"_meta":{"progressToken":[N]}}}`,
		`{"params":{"_meta":{"progressToken":"N"}}}`,
		`{"params":{"_meta":{"progressToken":null,"a":N}}}`,
		`{"params":{"_meta":{"progress":N,"progressTokens":N,"progressToken\n":N}}}`,
		`{"params":{"_meta":{"progressToken":N.5}}}`,
		`{"params":{"name":"t","task":{"ttl":60000}|,"_meta":{"progressToken":1}}}`,
		`{"params":{"_meta":{"progressToken":N^}, "task" : { "a" : {"b":["}\"{"]} }| } }`,
		`[{"params":{"task":{"ttl":1}|}},{"params":{}}]`, `{"params":{"_meta":null,"task":{}|}}`, `{"params":{"task":{}|,"_meta":null}}`,
		`{"params":{"task":null}}`, `{"params":{"task":[{}]}}`, `{"params":{"task":"{}"}}`, `{"params":{"tasks":{}}}`, `{"params":{"ta\u0073k":{}}}`,
		`{"params":{"arguments":{"task":{}}}}`, `{"params":{"_meta":{"task":{}}}}`, `{"task":{}}`, `{"params":{"task":{"a":"` + long + `"}}}`,
	} {
		body := strings.NewReplacer("N", large, "^", "", "|", "").Replace(want)
		for name, pieces := range map[string]struct{ from, to func(io.Reader) io.Reader }{
			"whole": {whole, whole}, "bytes": {iotest.OneByteReader, whole}, "to bytes": {whole, iotest.OneByteReader}, "halves": {iotest.HalfReader, iotest.HalfReader},
			"with the end": {iotest.DataErrReader, whole}, "to bytes, with the end": {iotest.DataErrReader, iotest.OneByteReader},
		} {
			got, err := through(pieces.from(strings.NewReader(body)), http.Header{}, pieces.to)
			if !json.Valid([]byte(body)) || !strings.ContainsAny(want, "^|") {
				if got != body || err != nil {
					t.Errorf("%s: %s is %s, %v", name, body, got, err)
				}
				continue
			}
			v, old := decoded(t, got), decoded(t, body)
			tokens, tasks := withoutCopies(t, v)
			withoutCopies(t, old)
			if tokens != strings.Count(want, "^") || tasks != strings.Count(want, "|") || !reflect.DeepEqual(v, old) || err != nil {
				t.Errorf("%s: %s is %s, %v", name, body, got, err)
			}
		}
		for name, value := range map[string]string{"Mcp-Method": "tools/list", "Content-Type": "text/plain; charset=utf-8"} { // where no token can be
			if got, _ := through(strings.NewReader(body), http.Header{name: {value}}, whole); got != body {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
	// A batch gets longer by a bounded number of copies: the SDK refuses what is too long.
	const one = `{"params":{"_meta":{"progressToken":` + large + `},"arguments":"<>&"}}`
	if got, _ := through(strings.NewReader("["+strings.Repeat(one+",", 5000)+one+"]"), http.Header{}, whole); strings.Count(got, tokenCopy) != 100 {
		t.Errorf("%d copies, want 100", strings.Count(got, tokenCopy))
	}
	// A body that is not whole, or longer than the SDK reads by default, arrives as it is.
	for _, body := range []io.Reader{io.MultiReader(strings.NewReader(one), iotest.ErrReader(io.ErrNoProgress)), iotest.DataErrReader(io.MultiReader(strings.NewReader(one), iotest.ErrReader(io.ErrNoProgress)))} {
		if got, err := through(body, http.Header{}, whole); err != io.ErrNoProgress || got != one {
			t.Errorf("%s, %v", got, err)
		}
	}
	// A copy makes a body no longer than it has to, and not longer than the SDK reads.
	text := `{"params":{"arguments":"` + strings.Repeat("<", 1<<20) + `","_meta":{"progressToken":` + large + `}}}`
	if got, _ := through(strings.NewReader("["+text+"]"), http.Header{}, whole); !strings.Contains(got, tokenCopy) || len(got) > len(text)+100 {
		t.Errorf("a batch of %d bytes has become one of %d", len(text), len(got))
	}
	full := one + strings.Repeat(" ", mcp.DefaultMaxRequestBodyBytes-len(one)-50)
	if got, err := through(strings.NewReader(full), http.Header{}, whole); err != nil || got != full {
		t.Errorf("%d bytes have become %d, %v", len(full), len(got), err)
	}
	blanks := one + strings.Repeat(" ", mcp.DefaultMaxRequestBodyBytes)
	if got, err := through(strings.NewReader(blanks), http.Header{}, whole); err != nil || got != blanks {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// FuzzBody checks that nothing is taken away and nothing is added but what is meant to be, and
// that the message stays JSON if it was.
func FuzzBody(f *testing.F) {
	for _, body := range []string{
		`{"params":{"_meta":{"progressToken":9007199254740993}}}`, `[{"params":{"_meta":{"progressToken":1e20,"a":"\"}"}}},[1,"params"]]`,
		`{"params":[{"_meta":{"progressToken":9007199254740993}}]}`, `{"a":{"params":{"_meta":{"progressToken":9007199254740993}}}}`, `]}]{"params":`,
		`{"params":{"task":{"ttl":1,"a":"\"}"},"_meta":{"progressToken":9007199254740993}}}`, `[{"params":{"task":{}}},{"params":{"task":[]}}]`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if strings.Contains(body, tokenCopy) || strings.Contains(body, taskCopy) {
			return // it could not be told from what was added
		}
		got, _ := through(strings.NewReader(body), http.Header{}, whole)
		if !json.Valid([]byte(body)) {
			if got != body {
				t.Errorf("%q has become %q", body, got)
			}
			return
		}
		v, old := decoded(t, got), decoded(t, body)
		withoutCopies(t, v)
		withoutCopies(t, old)
		if !reflect.DeepEqual(v, old) {
			t.Errorf("%q has become %q", body, got)
		}
	})
}

// The cost of a body is in proportion to its size, whatever is in it: it comes from anybody.
func TestBodyOfBrackets(t *testing.T) {
	const depth, size = 500, 100 << 10
	body := strings.Repeat("[", depth) + `{"progressToken":"` + strings.Repeat("x", size) + `"}` + strings.Repeat("]", depth)
	var read int64
	h := mcpsdk.WrapHTTP(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		read, _ = io.Copy(io.Discard, r.Body) // what is not read is not looked at
	}))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader(body)))
	runtime.ReadMemStats(&after)
	if read != int64(len(body)) {
		t.Errorf("%d of %d bytes were read", read, len(body))
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 20*size {
		t.Errorf("%d KiB were allocated for a body of %d KiB", got>>10, len(body)>>10)
	}
}

// A handler within refuses a request before its body is there. (A short one is awaited by
// net/http itself.)
func TestRefusedAtOnce(t *testing.T) {
	hs := httptest.NewServer(mcpsdk.WrapHTTP(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "who are you?", http.StatusUnauthorized)
	})))
	defer hs.Close()
	conn, err := net.Dial("tcp", hs.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || res.StatusCode != http.StatusUnauthorized {
		t.Errorf("%v, %v", res, err)
	}
}

// SPEC 9.5: behind a proxy that cuts every response after a time, a longer call is polled, its tool
// runs once, and nothing is cut. Without polling, the proxy cuts.
func TestPolling(t *testing.T) {
	for name, tc := range map[string]struct {
		after time.Duration
		store mcp.EventStore
		token any
		cuts  bool
		polls bool
	}{
		"polled":              {500 * time.Millisecond, mcp.NewMemoryEventStore(nil), "token", false, true},
		"not polled":          {0, mcp.NewMemoryEventStore(nil), "token", true, true}, // this client resumes what was cut
		"silent, polled once": {500 * time.Millisecond, mcp.NewMemoryEventStore(nil), nil, false, true},
	} {
		sdktest.Bubble(t, name, func(t *testing.T) {
			var runs, cuts, polls atomic.Int32
			server := newTestServer()
			mcp.AddTool(server, &mcp.Tool{Name: "long"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
				runs.Add(1)
				for range 130 {
					select {
					case <-ctx.Done():
						return nil, nil, context.Cause(ctx)
					case <-time.After(100 * time.Millisecond):
						if tc.token != nil {
							heartbeat.Beat(ctx)
						}
					}
				}
				return textResult("whole"), nil, nil
			})
			mcpsdk.Install(server, &mcpsdk.Options{Limits: &timeout.Config{Idle: time.Minute}, Interval: 50 * time.Millisecond})
			h := mcpsdk.WrapHTTP(mcpsdk.Poll(streamable(t, server, &mcp.StreamableHTTPOptions{EventStore: tc.store}), tc.after))
			target, _ := url.Parse("http://localhost/")
			forward := httputil.NewSingleHostReverseProxy(target)
			forward.Transport = overNet(t, h).Transport
			forward.ErrorLog = log.New(io.Discard, "", 0)
			forward.FlushInterval = -1
			limit := 9 * time.Second
			if tc.token == nil {
				limit = 30 * time.Second // of a proxy that cuts what is silent, say
			}
			proxy := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") != "" {
					polls.Add(1)
				} else if r.Method == http.MethodGet {
					forward.ServeHTTP(w, r) // the session's stream, which may be cut
					return
				}
				body, _ := io.ReadAll(r.Body) // or net/http closes it when the response begins, and the transport's last read of it fails
				r.Body = io.NopCloser(bytes.NewReader(body))
				ctx, cancel := context.WithTimeout(r.Context(), limit)
				defer cancel()
				defer func() {
					if ctx.Err() == context.DeadlineExceeded {
						cuts.Add(1)
						panic(http.ErrAbortHandler)
					}
				}()
				forward.ServeHTTP(w, r.WithContext(ctx))
			})
			cs := connectTo(t, newTestClient(nil), &mcp.StreamableClientTransport{Endpoint: "http://localhost/", HTTPClient: overNet(t, proxy)}, protocol2025)
			if res := call(t, cs, "long", tc.token); res.IsError {
				t.Fatal(texts(res))
			}
			if runs.Load() != 1 || (cuts.Load() > 0) != tc.cuts || (polls.Load() > 0) != tc.polls || tc.token == nil && polls.Load() != 1 {
				t.Errorf("%d runs, %d cuts, %d polls", runs.Load(), cuts.Load(), polls.Load())
			}
		})
	}
}
