package mcpsdk_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

const shutdownText = "Tool was aborted: the server is shutting down"

// longTool beats once, so that its client knows that it runs, and has much to say when it ends.
func longTool(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	heartbeat.Beat(ctx)
	<-ctx.Done()
	return textResult(strings.Repeat("x", 128<<10)), nil // more than a pipe holds
}

// Each call that runs when the process is told to end has its answer, over stdio, however often
// one tries, and the process ends with 0.
func TestAnswersAtShutdownStdio(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no such signals there")
	}
	t.Parallel()
	const tries = 6
	turns := make(chan bool, 4)
	var all sync.WaitGroup
	for range tries {
		turns <- true
		all.Go(func() {
			defer func() { <-turns }()
			if err := shutdownOnce(t, "long"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// shutdownOnce has a server over stdio run three calls, tells it to end, and returns what is
// wrong with what it says after that.
func shutdownOnce(t *testing.T, mode string) error {
	ctx, cancel := context.WithTimeout(t.Context(), 3*slack)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(cmd.Environ(), modeEnv+"="+mode, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { in.Close(); _ = cmd.Wait() }()
	lines := []string{
		initialize,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	}
	for id := 1; id <= 3; id++ {
		lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"long","arguments":{},"_meta":{"progressToken":%[1]d}}}`, id))
	}
	if _, err := io.WriteString(in, strings.Join(lines, "\n")+"\n"); err != nil {
		return err
	}
	r := bufio.NewReader(out)
	running, answered := 0, 0
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		var m struct {
			ID     any
			Method string
			Result struct {
				IsError bool
				Content []struct{ Text string }
			}
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return err
		}
		switch {
		case m.Method == "notifications/progress":
			if running++; running == 3 {
				if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
					return err
				}
			}
		case m.ID != nil && m.ID != "i":
			if answered++; !m.Result.IsError || len(m.Result.Content) != 2 || m.Result.Content[0].Text != shutdownText {
				return fmt.Errorf("answered with %.300s", line)
			}
		}
	}
	if err := cmd.Wait(); err != nil || running != 3 || answered != 3 {
		return fmt.Errorf("%v; of %d calls %d were answered", err, running, answered)
	}
	return nil
}

// The same over HTTP, whatever the protocol, with a stream of notifications open beside where
// there is one. The client is net/http's: that of the SDK gives up its calls when such a stream
// ends.
func TestAnswersAtShutdownHTTP(t *testing.T) {
	t.Parallel()
	const tries = 2 // that no answer is lost is shown for each order of events in toolcall
	const meta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`
	current := http.Header{"Mcp-Protocol-Version": {protocol2026}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"long"}}
	for _, tt := range []struct {
		name    string
		options mcp.StreamableHTTPOptions
		header  http.Header
		meta    string
	}{
		{"stateful", mcp.StreamableHTTPOptions{}, nil, ""},
		{"stateful, JSON", mcp.StreamableHTTPOptions{JSONResponse: true}, nil, ""},
		{"stateless", mcp.StreamableHTTPOptions{Stateless: true}, http.Header{}, ""},
		{"2026-07-28", mcp.StreamableHTTPOptions{Stateless: true}, current, meta},
		{"2026-07-28, propagated", mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}, current, meta},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for range tries {
				d := newDraining(t, func(s *mcp.Server) http.Handler {
					return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &tt.options)
				})
				header, streams := tt.header.Clone(), 0
				if header == nil {
					res, _ := d.post(t, "", nil, initialize)
					header = http.Header{"Mcp-Session-Id": {res.Header.Get("Mcp-Session-Id")}}
					d.post(t, "", header, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
					d.stream(t, header)
					streams++
				}
				for id := range 3 {
					go func() {
						_, body := d.post(t, "", header, fmt.Sprintf(longCall, id, tt.meta))
						d.answers <- body
					}()
				}
				d.shutdown(t, 3)
				for range 3 {
					checkAnswer(t, <-d.answers)
				}
				for range streams {
					<-d.ended
				}
			}
		})
	}
	t.Run("SSE", func(t *testing.T) {
		t.Parallel()
		for range tries {
			d := newDraining(t, func(s *mcp.Server) http.Handler {
				return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)
			})
			lines, endpoint, found := d.stream(t, nil), "", false
			for !found {
				endpoint, found = strings.CutPrefix(<-lines, "data: ")
			}
			d.post(t, endpoint, nil, initialize)
			d.post(t, endpoint, nil, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			for id := range 3 {
				d.post(t, endpoint, nil, fmt.Sprintf(longCall, id, ""))
			}
			d.shutdown(t, 3)
			all := <-d.ended
			for _, answer := range strings.SplitAfter(all, shutdownText)[:3] {
				checkAnswer(t, answer)
			}
		}
	})
}

const (
	initialize = `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	longCall   = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"long","arguments":{},"_meta":{%s}}}`
)

// A draining is a server over HTTP that is going to be shut down.
type draining struct {
	drain   toolcall.Drain
	server  *mcp.Server
	http    *httptest.Server
	started chan bool
	answers chan string // whole bodies, and those of streams
	ended   chan string
}

func newDraining(t *testing.T, handler func(*mcp.Server) http.Handler) *draining {
	t.Helper()
	d := &draining{server: newServer(), started: make(chan bool, 3), answers: make(chan string, 3), ended: make(chan string, 1)}
	d.server.AddTool(&mcp.Tool{Name: "long", InputSchema: anyInput}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		d.started <- true
		<-ctx.Done()
		return textResult(strings.Repeat("x", 8<<10)), nil // more than a buffer of net/http holds
	})
	mcpsdk.Install(d.server, nil)
	d.http = httptest.NewServer(d.drain.Handler(mcpsdk.WrapHTTP(handler(d.server))))
	return d
}

func (d *draining) send(t *testing.T, method, path string, header http.Header, body string) *http.Response {
	r, err := http.NewRequest(method, d.http.URL+path, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return nil
	}
	for k, v := range header {
		r.Header[k] = v
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	res, err := d.http.Client().Do(r)
	if err != nil {
		t.Error(err)
	}
	return res
}

// post returns the answer and its whole body.
func (d *draining) post(t *testing.T, path string, header http.Header, body string) (*http.Response, string) {
	res := d.send(t, http.MethodPost, path, header, body)
	if res == nil {
		return new(http.Response), ""
	}
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode > 299 {
		t.Errorf("%s, %v: %.300s", res.Status, err, all)
	}
	return res, string(all)
}

// stream opens one with GET, and returns its lines; at its end all of it is in ended.
func (d *draining) stream(t *testing.T, header http.Header) <-chan string {
	lines := make(chan string, 1000)
	res := d.send(t, http.MethodGet, "", header, "")
	if res == nil {
		t.FailNow()
	}
	go func() {
		defer res.Body.Close()
		var all strings.Builder
		for r := bufio.NewReader(res.Body); ; {
			line, err := r.ReadString('\n')
			all.WriteString(line)
			if err != nil {
				break
			}
			lines <- strings.TrimSpace(line)
		}
		d.ended <- all.String()
	}()
	return lines
}

// shutdown ends the server as soon as so many calls run.
func (d *draining) shutdown(t *testing.T, calls int) {
	t.Helper()
	for range calls {
		<-d.started
	}
	limited, cancel := context.WithTimeout(t.Context(), toolcall.ShutdownLimit)
	defer cancel()
	if err := d.drain.Shutdown(limited); err != nil {
		t.Error(err)
	}
	if err := d.http.Config.Shutdown(limited); err != nil {
		t.Error(err)
	}
	d.http.Close()
	for session := range d.server.Sessions() {
		session.Close()
	}
}

// checkAnswer fails unless the answer is there.
func checkAnswer(t *testing.T, body string) {
	t.Helper()
	if strings.Count(body, shutdownText) != 1 {
		t.Errorf("answered with %.300q", body)
	}
}

// A client that does not read its answers holds up the end no longer than the limit; one that
// leaves ends it at once.
func TestServeIsBounded(t *testing.T) {
	s := newServer()
	started := make(chan bool)
	s.AddTool(&mcp.Tool{Name: "long", InputSchema: anyInput}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		close(started)
		return longTool(ctx, req)
	})
	mcpsdk.Install(s, nil)
	serverIn, in := io.Pipe()
	out, serverOut := io.Pipe()
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- mcpsdk.Serve(ctx, s, &mcp.IOTransport{Reader: serverIn, Writer: serverOut}, 100*time.Millisecond)
	}()
	r := bufio.NewReader(out)
	_, _ = io.WriteString(in, initialize+"\n")
	if _, err := r.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"+
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"long","arguments":{}}}`+"\n")
	<-started
	end()
	if err := <-served; !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "calls without an answer: 1") {
		t.Error(err)
	}
	out.Close() // releases the SDK
	in.Close()

	serverEnd, clientEnd := mcp.NewInMemoryTransports()
	go func() { served <- mcpsdk.Serve(t.Context(), s, serverEnd, 0) }()
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil).Connect(t.Context(), clientEnd, nil)
	if err != nil {
		t.Fatal(err)
	}
	cs.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// A request that is on its way when the server ends is answered too, though its tool is not called.
func TestServeRefuses(t *testing.T) {
	s := newServer()
	release := make(chan bool)
	s.AddTool(&mcp.Tool{Name: "deaf", InputSchema: anyInput}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		heartbeat.Beat(ctx)
		<-release
		return textResult("done"), nil
	})
	mcpsdk.Install(s, &policy.Policy{Default: &timeout.Config{Grace: slack}})
	serverEnd, clientEnd := mcp.NewInMemoryTransports()
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- mcpsdk.Serve(ctx, s, serverEnd, toolcall.ShutdownLimit) }()
	began := make(chan bool, 1)
	cs := newClient(t, &mcp.ClientOptions{ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { began <- true }},
		protocol2025, clientEnd)
	first := make(chan []string, 1)
	go func() { first <- texts(call(t, cs, "deaf", "t")) }()
	<-began
	end()
	for {
		got := texts(call(t, cs, "noop", nil))[0] // the end is on its way
		if got == shutdownText {
			break
		}
	}
	close(release)
	if d := cmp.Diff([]string{shutdownText, "done"}, <-first); d != "" {
		t.Error(d)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// SPEC 3.22: with a limit that leaves time for it, calls are closing before they are aborted: a tool that
// looks returns what it has, as a result.
func TestServeClosesFirst(t *testing.T) {
	s := newServer()
	s.AddTool(&mcp.Tool{Name: "saves", InputSchema: anyInput}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		heartbeat.Beat(ctx)
		select {
		case <-timeout.Closing(ctx):
			return textResult("two of three files"), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	mcpsdk.Install(s, nil)
	serverEnd, clientEnd := mcp.NewInMemoryTransports()
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- mcpsdk.Serve(ctx, s, serverEnd, 6*toolcall.ShutdownLimit) }()
	began := make(chan bool, 1)
	cs := newClient(t, &mcp.ClientOptions{ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { began <- true }},
		protocol2025, clientEnd)
	answer := make(chan *mcp.CallToolResult, 1)
	go func() { answer <- call(t, cs, "saves", "t") }()
	<-began
	end()
	if res := <-answer; res.IsError || texts(res)[0] != "two of three files" {
		t.Errorf("%v", texts(res))
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
