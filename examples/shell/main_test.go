//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup"
)

// Nothing here waits for as long as this unless it fails.
const generous = time.Minute

// full reports whether everything is to be tried, which takes a minute.
func full() bool { return os.Getenv("SHELL_ATTACK_FULL") != "" }

// asMain makes the test binary the server. A mode of the harness would be gone from its environment, with which it runs
// itself again.
const asMain = "SHELL_TEST_MAIN"

// The test binary is also the server, and the helper of its commands.
func TestMain(m *testing.M) {
	procgroup.HelperMain()
	if os.Getenv(asMain) != "" {
		main()
	}
	harness.Main(m, nil, harness.Options{Parallel: 8})
}

// A process is a server that runs as one.
type process struct {
	cmd  *exec.Cmd
	mark string

	mu  sync.Mutex
	log strings.Builder
}

// server is the server, not started. It has a home of its own.
func server(t testing.TB, args ...string) *process {
	t.Helper()
	p := &process{mark: harness.Mark()}
	args = append([]string{"-env", harness.MarkEnv, "-env", "HARNESS_SUITE", "-env", asMain, "-dir", t.TempDir()}, args...)
	p.cmd = exec.Command(os.Args[0], args...)
	p.cmd.Env = append(os.Environ(), asMain+"=1", p.mark, "HOME="+t.TempDir(), "XDG_CONFIG_HOME=")
	p.cmd.Stderr = p
	return p
}

// Write takes the log.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *process) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// A session is connected to a server.
type session struct {
	*mcp.ClientSession
	t      testing.TB
	server *process

	mu    sync.Mutex
	heard []string // progress messages
}

// start starts a server over stdio and connects to it. At the end of the test it disconnects, and the server must end
// and leave nothing behind.
func start(t testing.TB, args ...string) *session {
	t.Helper()
	p := server(t, args...)
	s := connect(t, p, "2025-11-25", &mcp.CommandTransport{Command: p.cmd, TerminateDuration: generous})
	t.Cleanup(func() { harness.None(t, p.mark) })
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !strings.Contains(err.Error(), "killed") {
			t.Errorf("%v\n%s", err, p)
		}
	})
	return s
}

func connect(t testing.TB, p *process, protocol string, transport mcp.Transport) *session {
	t.Helper()
	s := &session{t: t, server: p}
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.heard = append(s.heard, r.Params.Message)
		},
	})
	ctx, cancel := context.WithTimeout(context.Background(), generous)
	defer cancel()
	var err error
	if s.ClientSession, err = c.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: protocol}); err != nil {
		t.Fatal(err, p)
	}
	return s
}

type args = map[string]any

// ask calls a tool. It returns the texts of the result, and false if the tool has failed.
func (s *session) ask(ctx context.Context, tool string, in args, out any) (text string, ok bool, err error) {
	params := &mcp.CallToolParams{Name: tool, Arguments: in}
	params.SetProgressToken("token")
	res, err := s.CallTool(ctx, params)
	if err != nil {
		return "", false, err
	}
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			text += t.Text
		}
	}
	if res.StructuredContent != nil {
		b, err := json.Marshal(res.StructuredContent)
		if err != nil {
			return "", false, err
		}
		if err := json.Unmarshal(b, out); err != nil {
			return "", false, err
		}
	}
	return text, !res.IsError, nil
}

// call calls a tool that must not fail.
func (s *session) call(tool string, in args) (a answer, text string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*generous)
	defer cancel()
	text, ok, err := s.ask(ctx, tool, in, &a)
	if err != nil || !ok {
		s.t.Fatalf("%s %v: %v, %s\n%s", tool, in, err, text, s.server)
	}
	return a, text
}

// fails calls a tool that must fail, and returns its words.
func (s *session) fails(tool string, in args) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), generous)
	defer cancel()
	text, ok, err := s.ask(ctx, tool, in, new(answer))
	if err != nil {
		return err.Error()
	}
	if ok {
		s.t.Errorf("%s %v has not failed: %s", tool, in, text)
	}
	return text
}

// code runs the server to its end, which comes soon, and returns its exit code.
func (p *process) code(t testing.TB) int {
	t.Helper()
	err := p.cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode()
	} else if err != nil {
		t.Error(err)
	}
	return 0
}

// exit returns the exit code of an answer, or -1 if the command has not ended.
func exit(a answer) int {
	if a.ExitCode == nil {
		return -1
	}
	return *a.ExitCode
}
