package main

import (
	"bufio"
	"context"
	"flag"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/internal/leftovers"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// Nothing here waits for as long as this unless it fails. It is less than the idle limit of run_command, which would end
// a server that does not end by itself.
const generous = 100 * time.Second

const asMain = "MCPSERVER_TEST_MAIN"

// asHost has the test binary be a host; see playHost.
const asHost = "MCPSERVER_TEST_HOST"

// The test binary is also the server.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asHost) != "":
		playHost()
	case os.Getenv(asMain) != "":
		main()
	}
	// The tests wait for most of their time, so there may be more of them at once than
	// there are processors.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// A process is a server that runs as one.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	mark string
	url  string // of a server with HTTP
	told bool   // to end, by a signal: a second one would end it at once

	mu  sync.Mutex
	log strings.Builder
}

// command is the server, not started. Env is in addition to that of the test.
func command(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), generous)
	t.Cleanup(cancel)
	s := &process{t: t, cmd: exec.CommandContext(ctx, exe, args...), mark: leftovers.Mark()}
	// The race detector would have the process wait for a second at its end.
	s.cmd.Env = append(s.cmd.Environ(), asMain+"=1", "GORACE=atexit_sleep_ms=0", s.mark)
	s.cmd.Env = append(s.cmd.Env, env...)
	return s
}

// overHTTP starts it, and at the end of the test has it end.
func overHTTP(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	return overHTTPAt(t, "127.0.0.1:0", env, args...)
}

func overHTTPAt(t *testing.T, address string, env []string, args ...string) *process {
	t.Helper()
	s := command(t, env, append([]string{"-http", address, "-progress-interval", "20ms"}, args...)...)
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stderr)
	var url string
	for ok := false; !ok; { // the limits of its tools come first
		line, err := lines.ReadString('\n')
		if url, ok = strings.CutPrefix(strings.TrimSpace(line), "listening on "); !ok && (err != nil || !strings.Contains(line, "msg=limits ")) {
			t.Fatalf("the server says %q", line)
		}
	}
	s.url = url
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(s, lines)
	}()
	t.Cleanup(func() {
		if !s.told {
			_ = s.cmd.Process.Signal(os.Interrupt)
		}
		<-read
		if err := s.cmd.Wait(); err != nil && !s.killed() {
			t.Errorf("the server: %v\n%s", err, s)
		}
		leftovers.None(t, s.mark)
	})
	return s
}

func (s *process) end(signal os.Signal) error {
	s.told = true
	return s.cmd.Process.Signal(signal)
}

func (s *process) killed() bool { return strings.Contains(s.cmd.ProcessState.String(), "killed") }

// Write takes the log.
func (s *process) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

func (s *process) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// A client is connected to a server of its own.
type client struct {
	*mcp.ClientSession
	server *process

	mu    sync.Mutex
	heard []mcp.ProgressNotificationParams
}

// A way is how a client and a server are connected.
type way struct{ transport, protocol string }

func (w way) String() string { return w.transport + " " + w.protocol }

var ways = []way{{"stdio", "2025-11-25"}, {"stdio", "2026-07-28"}, {"http", "2025-11-25"}, {"http", "2026-07-28"}}

// eachWay runs a test over all of them.
func eachWay(t *testing.T, test func(t *testing.T, w way)) {
	t.Helper()
	eachOf(t, ways, test)
}

func eachOf(t *testing.T, ways []way, test func(t *testing.T, w way)) {
	t.Helper()
	t.Parallel()
	for _, w := range ways {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			test(t, w)
		})
	}
}

type elicitation func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)

// connect starts a server and connects to it. At the end of the test it disconnects, and the
// server must end and leave nothing behind.
func (w way) connect(t *testing.T, e elicitation, env []string, args ...string) *client {
	t.Helper()
	c := new(client)
	var transport mcp.Transport
	if w.transport == "http" {
		c.server = overHTTP(t, env, args...)
		transport = &mcp.StreamableClientTransport{Endpoint: c.server.url}
	} else {
		c.server = command(t, env, append([]string{"-progress-interval", "20ms"}, args...)...)
		c.server.cmd.Stderr = c.server
		transport = &mcp.CommandTransport{Command: c.server.cmd, TerminateDuration: generous}
	}
	m := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: e,
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.heard = append(c.heard, *req.Params)
		},
	})
	session, err := m.Connect(context.Background(), transport, &mcp.ClientSessionOptions{ProtocolVersion: w.protocol})
	if err != nil {
		t.Fatal(err, c.server)
	}
	if got := session.InitializeResult().ProtocolVersion; got != w.protocol {
		t.Fatalf("the protocol is %s", got)
	}
	c.ClientSession = session
	t.Cleanup(func() {
		begun := time.Now()
		if err := session.Close(); err != nil && w.transport == "stdio" && !c.server.killed() {
			t.Errorf("%v\n%s", err, c.server)
		}
		if took := time.Since(begun); took > generous/2 {
			t.Errorf("the end took %v\n%s", took, c.server)
		}
		if w.transport == "stdio" {
			leftovers.None(t, c.server.mark)
		}
	})
	return c
}

// call calls a tool with a progress token.
func (c *client) call(ctx context.Context, tool string, args map[string]any) (*mcp.CallToolResult, error) {
	ctx, cancel := context.WithTimeout(ctx, generous)
	defer cancel()
	p := &mcp.CallToolParams{Name: tool, Arguments: args}
	p.SetProgressToken("token")
	return c.CallTool(ctx, p)
}

// must is call where there has to be a result. It returns its texts too.
func (c *client) must(t *testing.T, tool string, args map[string]any) (*mcp.CallToolResult, []string) {
	t.Helper()
	res, err := c.call(context.Background(), tool, args)
	if err != nil {
		t.Fatalf("%v\n%s", err, c.server)
	}
	return res, texts(res)
}

func texts(res *mcp.CallToolResult) (all []string) {
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			all = append(all, t.Text)
		}
	}
	return all
}

// outcome returns the kind, the exit code, the limits.
func outcome(t *testing.T, res *mcp.CallToolResult) []any {
	t.Helper()
	o, ok := res.Meta[toolcall.OutcomeKey].(map[string]any)
	if !ok {
		return nil
	}
	return []any{o["kind"], o["exitCode"], o["totalMs"], o["idleMs"]}
}

// messages returns the messages of the progress heard, which must increase strictly.
func (c *client) messages(t *testing.T) (all []string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, n := range c.heard {
		if i > 0 && n.Progress <= c.heard[i-1].Progress {
			t.Errorf("progress %v after %v", n.Progress, c.heard[i-1].Progress)
		}
		if n.ProgressToken != "token" {
			t.Errorf("token %v", n.ProgressToken)
		}
		all = append(all, n.Message)
	}
	return all
}

// abort calls a tool, aborts the call when begun says so, and gives it the time to end.
func (c *client) abort(t *testing.T, tool string, args map[string]any, begun func() bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := c.call(ctx, tool, args)
		ended <- err
	}()
	eventually(t, begun)
	cancel()
	if err := <-ended; err == nil {
		t.Error("the call has succeeded")
	}
}

// eventually waits for what is bound to happen.
func eventually(t *testing.T, happened func() bool) {
	t.Helper()
	pause := 5 * time.Millisecond // and longer each time: some look at all processes
	for begun := time.Now(); !happened(); time.Sleep(pause) {
		pause = min(2*pause, 160*time.Millisecond)
		if time.Since(begun) > generous/2 {
			t.Fatal("it does not happen")
		}
	}
}
