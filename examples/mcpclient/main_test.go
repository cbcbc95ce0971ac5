package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// The test binary is also the client, and a server over stdio.
func TestMain(m *testing.M) {
	harness.Main(m, map[string]func(){"client": main, "server": serve}, harness.Options{Parallel: 8})
}

func serve() {
	s := newServer(func(what string) { fmt.Fprintln(os.Stderr, "server:", what) })
	if err := mcpsdk.Serve(context.Background(), s, &mcp.StdioTransport{}, 0); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
	}
}

// newServer returns a server with tools that need no time. It tells when the tool "silent" begins and why it ends.
func newServer(tell func(what string)) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	add := func(name string, run func(ctx context.Context, req *mcp.CallToolRequest) (string, error)) {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			text, err := run(ctx, req)
			if err != nil {
				res := new(mcp.CallToolResult)
				res.SetError(err)
				return res, nil
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
		})
	}
	report := func(ctx context.Context, req *mcp.CallToolRequest, progress float64, message string) {
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: progress, Total: 7, Message: message})
	}
	add("works", func(ctx context.Context, req *mcp.CallToolRequest) (string, error) {
		report(ctx, req, 2, "main.go")
		return "done", nil
	})
	add("fails", func(context.Context, *mcp.CallToolRequest) (string, error) { return "", errors.New("no such file") })
	add("stopped", func(ctx context.Context, _ *mcp.CallToolRequest) (string, error) { <-ctx.Done(); return "", ctx.Err() })
	add("silent", func(ctx context.Context, req *mcp.CallToolRequest) (string, error) {
		report(ctx, req, 1, "step\x1b[2J\a")
		tell("begun")
		<-ctx.Done()
		tell("ended")
		return "", ctx.Err()
	})
	add("busy", func(ctx context.Context, req *mcp.CallToolRequest) (string, error) {
		for i := 1.0; ctx.Err() == nil; i++ {
			report(ctx, req, i, "")
			time.Sleep(time.Millisecond)
		}
		return "", ctx.Err()
	})
	s.AddTool(&mcp.Tool{Name: "asks", InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if answer, is := req.Params.InputResponses["q"].(*mcp.ElicitResult); is {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("%s %v", answer.Action, answer.Content)}}}, nil
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Message: "rm -r build", RequestedSchema: map[string]any{
			"type": "object", "required": []string{"approve"}, "properties": map[string]any{"approve": map[string]any{"type": "boolean", "title": "Approve"}},
		}}}}, nil
	})
	mcpsdk.Install(s, &mcpsdk.Options{Policy: &policy.Policy{Tools: map[string]policy.Tool{
		"stopped": {Limits: &timeout.Config{Total: time.Minute, Idle: time.Millisecond}},
		"silent":  {Limits: &timeout.Config{}}, "busy": {Limits: &timeout.Config{}},
	}}})
	return s
}

// overStdio makes arguments for a server that is started for the call.
func overStdio(args ...string) []string {
	server := harness.Command("server")
	return append(args, "--", "env", server.Env[len(server.Env)-1], server.Path)
}

// overHTTP starts a server in this process.
func overHTTP(t *testing.T, tell func(what string)) (url string) {
	t.Helper()
	s := newServer(tell)
	web := httptest.NewServer(mcpsdk.WrapHTTP(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)))
	t.Cleanup(func() {
		for session := range s.Sessions() {
			session.Close()
		}
		web.Close()
	})
	return web.URL
}

// SPEC 5.1, 7.7, 8.1, 8.2: the texts on stdout and stderr, and the exit codes.
func TestCall(t *testing.T) {
	for _, tc := range []struct {
		name   string
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{"success", overStdio("works"), 0, "done\n", "mcpclient: the tool succeeded after "},
		{"success, no limit", overStdio("-timeout", "0", "works", `{"a":1}`), 0, "done\n", "succeeded"},
		{"the server stops the tool", overStdio("stopped"), 124, "No progress for 0.001s (idle timeout).",
			"idle, exit code 124, limits: total 1m0s, idle 1ms, longest silence "},
		{"the tool fails", overStdio("fails"), 1, "no such file\n", "the tool failed after "},
		{"no such tool", overStdio("nothing"), 1, "", "unknown tool"},
		{"nobody to ask", overStdio("asks"), 1, "", "does not support elicitation"},
		{"not patient", overStdio("-timeout", "20ms", "-reset-on-progress=false", "busy"), 124, "", "Request timed out|the server stopped the tool"},
		{"silent", overStdio("-timeout", "10ms", "silent"), 124, "", "no progress for 10ms|the server stopped the tool"},
		{"cap", overStdio("-timeout", "1h", "-max-total", "20ms", "busy"), 124, "", "Maximum total timeout exceeded|the server stopped the tool"},
		{"not found", []string{"works", "--", "no-such-command"}, 127, "", "not found"},
		{"no server", []string{"works", "--", "true"}, 1, "", "connecting"},
		{"nobody listens", []string{"-url", "http://127.0.0.1:1/mcp", "works"}, 1, "", "refused"},
		{"no tool", overStdio(), 2, "", "want TOOL"},
		{"help", []string{"-help"}, 0, "", "Usage: mcpclient"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cmd := harness.Command("client", tc.args...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if code := cmd.ProcessState.ExitCode(); code != tc.code || !strings.Contains(stdout.String(), tc.stdout) || !regexp.MustCompile(tc.stderr).MatchString(stderr.String()) {
				t.Errorf("exit code %d, want %d, %q and %q\nstdout: %s\nstderr: %s", code, tc.code, tc.stdout, tc.stderr, &stdout, &stderr)
			}
		})
	}
}

func TestParse(t *testing.T) {
	limits := request.Limits{Timeout: time.Minute, ResetOnProgress: true}
	given := request.Limits{Timeout: time.Second, MaxTotal: time.Hour}
	for _, tc := range []struct {
		args  string
		want  options
		error string
	}{
		{"hang -- server -x", options{limits: limits, tool: "hang", command: []string{"server", "-x"}}, ""},
		{`-timeout 1s -reset-on-progress=false -max-total 1h -protocol 2025-11-25 -wait-for-server -url u hang {"a":1}`,
			options{limits: given, tool: "hang", url: "u", protocol: "2025-11-25", standing: true, arguments: map[string]any{"a": 1.0}}, ""},
		{"hang", options{}, "want a server"},
		{"-url u hang -- server", options{}, "want a server"},
		{"a b c -- server", options{}, "want TOOL"},
		{"hang { -- server", options{}, "want a JSON object"},
		{"hang [] -- server", options{}, "want a JSON object"},
		{"-x", options{}, "not defined: -x"},
	} {
		got, err := parse(strings.Fields(tc.args), new(bytes.Buffer))
		if tc.want.arguments == nil {
			tc.want.arguments = map[string]any{}
		}
		if d := cmp.Diff(tc.want, got, cmp.AllowUnexported(options{})); err == nil && (tc.error != "" || d != "") || err != nil && (tc.error == "" || !strings.Contains(err.Error(), tc.error)) {
			t.Errorf("%s: %v, want %q\n%s", tc.args, err, tc.error, d)
		}
	}
}

// SPEC 8.7: a server that is not there yet is waited for.
func TestWaitsForServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String() + "/mcp"
	l.Close()
	cmd := harness.Command("client", "-wait-for-server", "-url", url, "works")
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stderr).ReadString('\n')
	if err != nil || !strings.Contains(line, "refused") || !strings.HasSuffix(line, "; trying again in 30 s\n") {
		t.Errorf("%q, %v", line, err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Error("exit code", cmd.ProcessState.ExitCode())
	}
}

// SPEC 3.11: the progress is shown while the tool runs. Ctrl-C stops the tool at the server, and so does the end of a client that is killed.
func TestStopsTheTool(t *testing.T) {
	for _, protocol := range []string{"2025-11-25", "2026-07-28"} {
		for _, tc := range []struct {
			name string
			http bool
			end  os.Signal
			code int
		}{
			{"Ctrl-C", false, os.Interrupt, 130},
			{"Ctrl-C, http", true, os.Interrupt, 130},
			{"killed", false, os.Kill, -1},
		} {
			t.Run(protocol+" "+tc.name, func(t *testing.T) {
				t.Parallel()
				told := make(chan string, 10)
				args := []string{"-protocol", protocol}
				if tc.http {
					args = append(args, "-url", overHTTP(t, func(what string) { told <- what }), "silent")
				} else {
					args = append(args, overStdio("silent")...)
				}
				cmd := harness.Command("client", args...)
				stderr, err := cmd.StderrPipe()
				if err == nil {
					err = cmd.Start()
				}
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan bool)
				go func() { // until the server, which has it too, has ended
					defer close(ended)
					for lines := bufio.NewScanner(stderr); lines.Scan(); {
						if what, is := strings.CutPrefix(lines.Text(), "server: "); is {
							told <- what
						} else if lines.Text() == "progress: 1 of 7 step[2J" {
							told <- "shown"
						}
					}
				}()
				if both := []string{<-told, <-told}; !slices.Contains(both, "begun") || !slices.Contains(both, "shown") {
					t.Error(both)
				}
				if err := cmd.Process.Signal(tc.end); err != nil {
					t.Error(err)
				}
				if what := <-told; what != "ended" {
					t.Error(what)
				}
				<-ended
				_ = cmd.Wait()
				if code := cmd.ProcessState.ExitCode(); code != tc.code {
					t.Errorf("exit code %d", code)
				}
			})
		}
	}
}

// A full is a disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestFullDisk(t *testing.T) {
	var stderr strings.Builder
	code := show(&mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "text"}}}, time.Second, full{}, &stderr)
	if code != 1 || stderr.String() != "mcpclient: no space left\n" {
		t.Errorf("exit code %d, %q", code, &stderr)
	}
}
