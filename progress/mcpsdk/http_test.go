package mcpsdk_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// What the documentation says of a client that goes away: without WrapHTTP the limits stop
// the tool, unless the SDK's own option is set; on stateful HTTP they do in any case.
func TestDisconnectOverHTTP(t *testing.T) {
	t.Parallel()
	bare := func(h http.Handler) http.Handler { return h }
	wrapped := func(h http.Handler) http.Handler { return mcpsdk.WrapHTTP(h) }
	streamable := func(o mcp.StreamableHTTPOptions) func(*mcp.Server) http.Handler {
		return func(s *mcp.Server) http.Handler {
			return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &o)
		}
	}
	sse := func(s *mcp.Server) http.Handler {
		return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)
	}
	for _, tt := range []struct {
		name, version string
		handler       func(*mcp.Server) http.Handler
		wrap          func(http.Handler) http.Handler
		code          int
	}{
		{"SSE", "", sse, bare, timeout.ExitTimeout},
		{"SSE, wrapped", "", sse, wrapped, timeout.ExitAborted},
		// This client ends the session when it gives up, which the SDK has wait for the tool.
		{"stateful", protocol2025, streamable(mcp.StreamableHTTPOptions{}), bare, timeout.ExitTimeout},
		{"stateful, wrapped", protocol2025, streamable(mcp.StreamableHTTPOptions{}), wrapped, timeout.ExitAborted},
		{"stateless", protocol2025, streamable(mcp.StreamableHTTPOptions{Stateless: true}), bare, timeout.ExitTimeout},
		{"stateless, wrapped", protocol2025, streamable(mcp.StreamableHTTPOptions{Stateless: true}), wrapped, timeout.ExitAborted},
		{"2026-07-28", protocol2026, streamable(mcp.StreamableHTTPOptions{Stateless: true}), bare, timeout.ExitTimeout},
		{"2026-07-28, propagated", protocol2026,
			streamable(mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}), bare, timeout.ExitAborted},
		{"2026-07-28, wrapped", protocol2026, streamable(mcp.StreamableHTTPOptions{Stateless: true}), wrapped, timeout.ExitAborted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newServer()
			st := newStopper(s, timeout.Config{Total: 8 * time.Second})
			cs := throughHTTP(t, s, tt.wrap(tt.handler(s)), func(url string, c *http.Client) mcp.Transport {
				if tt.version == "" {
					return &mcp.SSEClientTransport{Endpoint: url, HTTPClient: c}
				}
				return &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: c, MaxRetries: -1}
			}, nil, tt.version)
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = cs.CallTool(ctx, &mcp.CallToolParams{Name: "silent"})
			}()
			<-st.started
			hangUp(t, cs)
			st.endsWith(t, tt.code)
			cancel()
			<-done
		})
	}
}

// A tool may be a client of a server in memory, whose calls are others than its own, with
// progress and an end of their own.
func TestServerInsideATool(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]link{"HTTP": links["HTTP"], "HTTP 2026-07-28": links["HTTP 2026-07-28"], "SSE": links["SSE"]} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inner := newServer()
			mcpsdk.Install(inner, nil)
			outer := newServer()
			outer.AddTool(&mcp.Tool{Name: "gateway", InputSchema: anyInput}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				serverEnd, clientEnd := mcp.NewInMemoryTransports()
				ss, err := inner.Connect(ctx, serverEnd, nil)
				if err != nil {
					return nil, err
				}
				defer ss.Wait()
				told := make(chan any, 100)
				cs, err := mcp.NewClient(&mcp.Implementation{Name: "gateway", Version: "1"}, &mcp.ClientOptions{
					ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) { told <- req.Params.ProgressToken },
				}).Connect(ctx, clientEnd, nil)
				if err != nil {
					return nil, err
				}
				defer cs.Close()
				p := &mcp.CallToolParams{Name: "report"}
				p.SetProgressToken("inner")
				if _, err := cs.CallTool(ctx, p); err != nil {
					return nil, err
				}
				return textResult(fmt.Sprint("heard of ", <-told)), nil
			})
			mcpsdk.Install(outer, &policy.Policy{Default: &timeout.Config{Total: slack}})
			cs := connect(t, outer, nil)
			if d := cmp.Diff([]string{"heard of inner"}, texts(call(t, cs, "gateway", "outer"))); d != "" {
				t.Error(d)
			}
		})
	}
}

// Middleware that is there twice sends progress once.
func TestInstalledTwice(t *testing.T) {
	s := newServer()
	s.AddTool(&mcp.Tool{Name: "beats", InputSchema: anyInput}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for range 50 {
			heartbeat.Beat(ctx)
			time.Sleep(time.Millisecond)
		}
		return textResult("done"), nil
	})
	mcpsdk.Install(s, nil, mcpsdk.WithInterval(time.Hour))
	mcpsdk.Install(s, nil, mcpsdk.WithInterval(time.Hour))
	c := newRawClient(t, s, plain)
	c.call(1, "beats", `"t"`)
	if m := c.next(); string(m.Params.ProgressToken) != `"t"` {
		t.Errorf("got %+v, want progress", m)
	}
	if m := c.next(); m.ID == nil {
		t.Errorf("got %+v, want the result", m)
	}
}

// WrapHTTP hands on bodies of any size, and errors of reading one.
func TestBodies(t *testing.T) {
	const limit = mcp.DefaultMaxRequestBodyBytes
	var got []byte
	var failed error
	h := mcpsdk.WrapHTTP(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got, failed = io.ReadAll(r.Body)
		if r.ContentLength >= 0 && int(r.ContentLength) != len(got) && failed == nil {
			t.Errorf("Content-Length %d, body of %d bytes", r.ContentLength, len(got))
		}
	}))
	big := `{"params":{"_meta":{"progressToken":9007199254740993}}}`
	for name, body := range map[string]string{
		"empty": "", "no JSON": "progressToken", "a number": `1 "progressToken"`, "nulls": `[null,{"params":null},"progressToken"]`, "no params": `{"x":"progressToken"}`,
		"small": `{"params":{"_meta":{"progressToken":1}}}`, "at the limit": strings.Repeat("x", limit), "above": strings.Repeat("x", limit+1),
		"above, with a token": big + strings.Repeat(" ", limit),
	} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader(body)))
		if string(got) != body && !strings.HasSuffix(name, "token") || failed != nil {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(body), failed)
		}
	}
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader(big)))
	want := `{"params":{"_meta":{"progressToken":9007199254740993,"io.github.tooldeadline/progressToken":"9007199254740993"}}}`
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Error(d)
	}
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", io.MultiReader(strings.NewReader("ab"), brokenReader{})))
	if string(got) != "ab" || failed != io.ErrNoProgress {
		t.Errorf("got %q, %v", got, failed)
	}
}

// A body gets longer by the copy of the token, and a batch by a bounded number of them: the SDK
// refuses what is too long.
func TestBodyGrowth(t *testing.T) {
	const one = `{"params":{"_meta":{"progressToken":9007199254740993},"arguments":"<>&"}}`
	for name, tt := range map[string]struct {
		body   string
		copies int
	}{
		"one":    {one, 1},
		"two":    {"\n[" + one + "," + one + "]", 2},
		"many":   {"[" + strings.Repeat(one+",", 5000) + one + "]", 100},
		"nested": {"[[" + one + "]]", 0},
	} {
		var got string
		wrapped(&got).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader(tt.body)))
		const exact = `,"io.github.tooldeadline/progressToken":"9007199254740993"`
		if n := strings.Count(got, exact); n != tt.copies {
			t.Errorf("%s: %d copies, want %d", name, n, tt.copies)
		}
		if strings.ReplaceAll(got, exact, "") != tt.body {
			t.Errorf("%s: more has changed", name)
		}
	}
}

// wrapped is WrapHTTP around what reads the whole body.
func wrapped(got *string) http.Handler {
	return mcpsdk.WrapHTTP(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*got = string(body)
	}))
}

// The token is where it belongs, and what looks like one elsewhere is not.
func TestBodyPaths(t *testing.T) {
	for body, copies := range map[string]int{
		`{"a":"\"","params":{"a":[{}],"_meta":{"a":{"b":{}},"progressToken":N}}}`:    1,
		` {"params" : {"_meta" : {"progressToken" : N } } }`:                         1,
		`{"params":{"_meta":{}},"params":{"_meta":{"progressToken":N}}}`:             1,
		`[{"params":{"_meta":{}}},{"params":{"_meta":{"progressToken":N}}}]`:         1,
		`[1,[],{"params":{"_meta":{"progressToken":N}}}]`:                            1,
		`[{"params":null},{"params":{"_meta":{"progressToken":N}}}]`:                 1,
		`[{"params":null},{"x":{"_meta":{"progressToken":N}}}]`:                      0,
		`{"params":{"_meta":{},"a":{"progressToken":N}}}`:                            0,
		`{"PARAMS":{"_meta":{"progressToken":N}}}`:                                   0,
		`{"a":{"params":{"_meta":{"progressToken":N}}}}`:                             0,
		`{"params":{"a":{"_meta":{"progressToken":N}}}}`:                             0,
		`{"params":{"_meta":{"a":{"progressToken":N}}}}`:                             0,
		`{"params":{"_meta":{},"progressToken":N}}`:                                  0,
		`{"params":{"a":1},"_meta":{"progressToken":N}}`:                             0,
		`{"params":{"_meta":{}},"progressToken":N}`:                                  0,
		`[{"params":null},{"_meta":{"progressToken":N}}]`:                            0,
		`[{"params":{"_meta":null}},{"progressToken":N}]`:                            0,
		`{"params":[{"_meta":{"progressToken":N}}]}`:                                 0,
		`{"params":{"_meta":[{"progressToken":N}]}}`:                                 0,
		`{"params":{"_meta":{"progressToken":[N]}}}`:                                 0,
		`{"params":{"_meta":{"progressToken":"N"}}}`:                                 0,
		`{"params":{"_meta":{"progressToken":null,"a":N}}}`:                          0,
		`{"params":{"_meta":{"progress":N,"progressTokens":N,"progressToken\n":N}}}`: 0,
		`{"params":N}`:                               0,
		`{"params":{"_meta":N}}`:                     0,
		`{"params":{"_meta":{"progressToken":N.5}}}`: 0,
	} {
		body = strings.ReplaceAll(body, "N", "9007199254740993")
		if !json.Valid([]byte(body)) {
			t.Fatal(body)
		}
		var got string
		wrapped(&got).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader(body)))
		if n := strings.Count(got, `"io.github.tooldeadline/progressToken":"9007199254740993"`); n != copies || !json.Valid([]byte(got)) {
			t.Errorf("%d copies, want %d: %s", n, copies, got)
		}
	}
}

// The "task" of a call, of which the SDK knows nothing, is put where it looks: behind it, in a _meta
// that it decodes into the other one.
func TestBodyTask(t *testing.T) {
	const put = `,"_meta":{"io.github.tooldeadline/task":`
	for body, task := range map[string]string{
		`{"params":{"name":"t","task":{"ttl":60000},"_meta":{"progressToken":1}}}`:                    `{"ttl":60000}`,
		`{"params":{"name":"t","_meta":{"progressToken":1},"task":{}}}`:                               `{}`,
		`{"params":{"_meta":{"progressToken":9007199254740993}, "task" : { "a" : {"b":["}\"{"]} } }}`: `{ "a" : {"b":["}\"{"]} }`,
		`[{"params":{"task":{"ttl":1}}},{"params":{}}]`:                                               `{"ttl":1}`,
		`{"params":{"task":null}}`:                                      "",
		`{"params":{"task":[{}]}}`:                                      "",
		`{"params":{"task":"{}"}}`:                                      "",
		`{"params":{"tasks":{}}}`:                                       "",
		`{"params":{"ta\u0073k":{}}}`:                                   "",
		`{"params":{"arguments":{"task":{}}}}`:                          "",
		`{"params":{"_meta":{"task":{}}}}`:                              "",
		`{"task":{}}`:                                                   "",
		`{"params":{"task":{"a":"` + strings.Repeat("x", 1024) + `"}}}`: "",
	} {
		body = strings.ReplaceAll(body, `\\`, `\`)
		task = strings.ReplaceAll(task, `\\`, `\`)
		if !json.Valid([]byte(body)) {
			t.Fatal(body)
		}
		var got string
		wrapped(&got).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", iotest.HalfReader(strings.NewReader(body))))
		want := body
		if task != "" {
			at := strings.Index(body, task) + len(task)
			want = body[:at] + put + task + "}" + body[at:]
		}
		want = strings.Replace(want, `9007199254740993`, `9007199254740993,"io.github.tooldeadline/progressToken":"9007199254740993"`, 1)
		if d := cmp.Diff(want, got); d != "" || !json.Valid([]byte(got)) {
			t.Error(d)
		}
	}
}

// An error that comes with the last bytes is not lost where a copy comes between.
func TestBodyError(t *testing.T) {
	const body = `{"params":{"_meta":{"progressToken":9007199254740993}}}`
	r := httptest.NewRequest("POST", "/", &onceReader{body, io.ErrNoProgress})
	mcpsdk.WrapHTTP(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err != io.ErrNoProgress || !strings.HasSuffix(string(body), `993"}}}`) {
			t.Errorf("%s, %v", body, err)
		}
	})).ServeHTTP(httptest.NewRecorder(), r)
}

// A onceReader returns all it has along with an error, which it does not repeat.
type onceReader struct {
	body string
	err  error
}

func (o *onceReader) Read(p []byte) (int, error) {
	n, err := copy(p, o.body), o.err
	o.body, o.err = o.body[n:], io.EOF
	return n, err
}

// Whatever the chunks in which a body comes, and in which it is read, it is the same.
func TestBodyInPieces(t *testing.T) {
	const body = `[{"params":{"_meta":{"progressToken":9007199254740993,"x":[{"progressToken":9007199254740995}]}}},{"params":{"_meta":{"progressToken": -9007199254740995 }}}]`
	want := strings.NewReplacer(`993,`, `993,"io.github.tooldeadline/progressToken":"9007199254740993",`,
		`995 }`, `995,"io.github.tooldeadline/progressToken":"-9007199254740995" }`).Replace(body)
	for name, tt := range map[string]struct{ from, to func(io.Reader) io.Reader }{
		"bytes":         {iotest.OneByteReader, func(r io.Reader) io.Reader { return r }},
		"to bytes":      {func(r io.Reader) io.Reader { return r }, iotest.OneByteReader},
		"halves":        {iotest.HalfReader, iotest.HalfReader},
		"with the end":  {iotest.DataErrReader, func(r io.Reader) io.Reader { return r }},
		"to bytes, end": {iotest.DataErrReader, iotest.OneByteReader},
	} {
		var got string
		mcpsdk.WrapHTTP(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			all, err := io.ReadAll(tt.to(r.Body))
			if got = string(all); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", tt.from(strings.NewReader(body))))
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// Where no token can be, the body is that of the request.
func TestBodyLeftAlone(t *testing.T) {
	for name, header := range map[string]http.Header{
		"another method": {"Mcp-Method": {"tools/list"}}, "another type": {"Content-Type": {"text/plain; charset=utf-8"}},
	} {
		body := `{"params":{"_meta":{"progressToken":9007199254740993}}}`
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		r.Header = header
		var got string
		wrapped(&got).ServeHTTP(httptest.NewRecorder(), r)
		if got != body {
			t.Errorf("%s: %s", name, got)
		}
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
	_ = conn.SetDeadline(time.Now().Add(slack))
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || res.StatusCode != http.StatusUnauthorized {
		t.Errorf("%v, %v", res, err)
	}
}

const taskCopy = `,"_meta":{"io.github.tooldeadline/task":`

// withoutTasks takes the copies out again, each of which must be one of what stands before it.
func withoutTasks(t *testing.T, body string) string {
	for {
		at := strings.Index(body, taskCopy)
		if at < 0 {
			return body
		}
		var value json.RawMessage
		rest := body[at+len(taskCopy):]
		if err := json.NewDecoder(strings.NewReader(rest)).Decode(&value); err != nil {
			t.Fatalf("%v: %q", err, body)
		}
		if !strings.HasSuffix(body[:at], string(value)) || !strings.HasPrefix(rest[len(value):], "}") {
			t.Fatalf("no copy: %q", body)
		}
		body = body[:at] + rest[len(value)+1:]
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
	copied := regexp.MustCompile(`,"io\.github\.tooldeadline/progressToken":"-?[0-9]+"`)
	f.Fuzz(func(t *testing.T, body string) {
		if copied.MatchString(body) || strings.Contains(body, taskCopy) {
			return // it could not be told from what was added
		}
		var got string
		wrapped(&got).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader(body)))
		if json.Valid([]byte(body)) && !json.Valid([]byte(got)) {
			t.Errorf("%q is no JSON any more: %q", body, got)
		}
		if json.Valid([]byte(body)) {
			got = withoutTasks(t, got)
		} else if strings.Contains(got, taskCopy) {
			return
		}
		if copied.ReplaceAllString(got, "") != body {
			t.Errorf("%q has become %q", body, got)
		}
		var m struct {
			Params struct {
				Meta map[string]json.RawMessage `json:"_meta"`
			}
		}
		if json.Unmarshal([]byte(got), &m) == nil && m.Params.Meta["io.github.tooldeadline/progressToken"] != nil && m.Params.Meta["progressToken"] == nil {
			t.Errorf("%q has a copy of no token: %q", body, got)
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

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrNoProgress }
