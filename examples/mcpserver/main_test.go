package main

import (
	"context"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// The test binary is also the server.
func TestMain(m *testing.M) {
	procgroup.HelperMain()
	harness.Main(m, map[string]func(){"server": main}, harness.Options{Parallel: 8})
}

var protocols = []string{"2025-11-25", "2026-07-28"}

// A log is what a server writes on its stderr.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A client is connected to a server of its own.
type client struct {
	*mcp.ClientSession
	log  log
	stop func() // the server, as a signal does; it returns when the server has ended

	mu    sync.Mutex
	heard []mcp.ProgressNotificationParams
}

func (c *client) hears(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = append(c.heard, *req.Params)
}

// messages returns the messages of the progress heard, which must increase strictly.
func (c *client) messages(t *testing.T) (all []string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, n := range c.heard {
		if i > 0 && n.Progress <= c.heard[i-1].Progress || n.ProgressToken != "token" {
			t.Errorf("%+v after %+v", n, c.heard[max(i-1, 0)])
		}
		all = append(all, n.Message)
	}
	return all
}

type elicitation func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)

// eachProtocol runs a test over both, each time in a bubble, with the server that main makes and the limits of the
// policy alone. Client and server are connected as over stdio.
func eachProtocol(t *testing.T, o options, person elicitation, test func(t *testing.T, c *client, protocol string)) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if o.calls == 0 {
					o.calls = 16
				}
				if o.approval == 0 {
					o.approval = 30 * time.Second
				}
				c := new(client)
				logger := slog.New(slog.NewTextHandler(&c.log, nil))
				p := limits(o.approval, logger)
				p.Lookup = func(string) (string, bool) { return "", false }
				c.connect(t, p, o, logger, person, protocol)
				defer c.stop()
				test(t, c, protocol)
			})
		})
	}
}

func (c *client) connect(t *testing.T, p *policy.Policy, o options, logger *slog.Logger, person elicitation, protocol string) {
	here, there := mcp.NewInMemoryTransports()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mcpsdk.Serve(ctx, newServer(p, o, logger), there, 0) }()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: person, ProgressNotificationHandler: c.hears,
	}).Connect(t.Context(), here, &mcp.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		t.Fatal(err)
	}
	c.ClientSession = session
	c.stop = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		session.Close()
	})
}

// call calls a tool with a progress token.
func (c *client) call(ctx context.Context, tool string, args map[string]any) (*mcp.CallToolResult, error) {
	p := &mcp.CallToolParams{Name: tool, Arguments: args}
	p.SetProgressToken("token")
	return c.CallTool(ctx, p)
}

// must is call where there has to be a result. It returns its texts too.
func (c *client) must(t *testing.T, tool string, args map[string]any) (*mcp.CallToolResult, []string) {
	t.Helper()
	res, err := c.call(context.Background(), tool, args)
	if err != nil {
		t.Fatalf("%v\n%s", err, &c.log)
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
func outcome(res *mcp.CallToolResult) []any {
	o, ok := res.Meta[toolcall.OutcomeKey].(map[string]any)
	if !ok {
		return nil
	}
	return []any{o["kind"], o["exitCode"], o["totalMs"], o["idleMs"]}
}

// overHTTP runs the program in this process, as one that serves HTTP, until the end of the test.
func overHTTP(t *testing.T, args ...string) (url string, stderr *log) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	stderr = new(log)
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, append([]string{"-progress-interval", "20ms"}, args...), stderr) }()
	t.Cleanup(func() {
		stop()
		if code := <-ended; code != 0 {
			t.Errorf("exit code %d\n%s", code, stderr)
		}
	})
	listening := regexp.MustCompile(`(?m)^listening on (\S+)$`)
	harness.Eventually(t, "the server to listen", func() bool {
		if found := listening.FindStringSubmatch(stderr.String()); found != nil {
			url = found[1]
		}
		return url != ""
	})
	return url, stderr
}

// The settings and flags of the program that make no sense are errors at the start, which say where they stand.
func TestUsage(t *testing.T) {
	for _, tc := range []struct {
		name string
		env  string
		args []string
		code int
		want string
	}{
		{"bad environment", "SEARCH_TIMEOUT_MS", nil, exitUsage, `SEARCH_TIMEOUT_MS="soon"`},
		{"bad general environment", "MCP_TIMEOUT", nil, exitUsage, `MCP_TIMEOUT="soon"`},
		{"an argument", "", []string{"stdio"}, exitUsage, "want no arguments"},
		{"no approval", "", []string{"-approval-limit", "0s"}, exitUsage, "above 0"},
		{"no interval", "", []string{"-progress-interval", "-1s"}, exitUsage, "above 0"},
		{"unknown flag", "", []string{"-port", "1"}, exitUsage, "not defined: -port"},
		{"no file", "", []string{"-config", "/no/such/file"}, exitUsage, "-config: /no/such/file: open /no/such/file:"},
		{"no port", "", []string{"-http", "127.0.0.1"}, 1, "missing port"},
		{"no page", "", []string{"-inspect", "127.0.0.1:no"}, exitUsage, "-inspect: "},
		{"help", "", []string{"-help"}, 0, "-approval-limit"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.env != "" {
				t.Setenv(tc.env, "soon")
			}
			var stderr log
			if code := run(t.Context(), tc.args, io.Writer(&stderr)); code != tc.code || !strings.Contains(stderr.String(), tc.want) {
				t.Errorf("exit code %d, want %d and %q in:\n%s", code, tc.code, tc.want, &stderr)
			}
		})
	}
}
