package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/leftovers"
)

// Nothing here waits for as long as this unless it fails.
const generous = 2 * time.Minute

const asMain = "MCPCLIENT_TEST_MAIN"

var server string // the path of mcpserver

// The test binary is also the client.
func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
	}
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "mcpclient")
	if err != nil {
		panic(err)
	}
	server = filepath.Join(dir, "mcpserver")
	if runtime.GOOS == "windows" {
		server += ".exe"
	}
	code := 1
	if out, err := exec.Command("go", "build", "-ldflags=-w", "-o", server, "../mcpserver").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
	} else {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// program is the client, with a mark by which it and its processes are found.
func program(t *testing.T, env []string, args ...string) (cmd *exec.Cmd, mark string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), generous)
	t.Cleanup(cancel)
	cmd, mark = exec.CommandContext(ctx, exe, args...), leftovers.Mark()
	cmd.Env = append(cmd.Environ(), asMain+"=1", "GORACE=atexit_sleep_ms=0", mark)
	cmd.Env = append(cmd.Env, env...)
	t.Cleanup(func() { leftovers.None(t, mark) })
	return cmd, mark
}

// own makes arguments for a server that is started for the call.
func own(args ...string) []string { return append(args, "--", server, "-progress-interval", "20ms") }

// overHTTP starts a server, returns its URL, and ends it with the test. Its processes have the mark.
func overHTTP(t *testing.T, env ...string) (url, mark string) {
	t.Helper()
	mark = leftovers.Mark()
	cmd := exec.Command(server, "-http", "127.0.0.1:0", "-progress-interval", "20ms")
	cmd.Env = append(append(cmd.Environ(), mark), env...)
	log := filepath.Join(t.TempDir(), "log")
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd.Stderr = f
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		leftovers.None(t, mark)
	})
	eventually(t, func() bool {
		text, _ := os.ReadFile(log)
		_, after, _ := strings.Cut(string(text), "listening on ")
		var whole bool
		url, _, whole = strings.Cut(after, "\n")
		return whole
	})
	return url, mark
}

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

// SPEC 5.1, 7.7, 8.1, 8.2: the texts on stdout and stderr, and the exit codes.
func TestCall(t *testing.T) {
	t.Parallel()
	const (
		slow  = `{"command":"sh","args":["-c","for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 2; done"]}`
		fails = `{"command":"sh","args":["-c","echo out; exit 3"]}`
	)
	for _, tc := range []struct {
		name   string
		env    []string
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{"success", nil, own("run_command", `{"command":"echo","args":["hello"]}`), 0, "exit code: 0\n\nhello\n", "the tool succeeded after "},
		{"no arguments", []string{"MCP_IDLE_TIMEOUT=0.5"}, own("hang"), 124, "No progress for 0.5s (idle timeout).",
			"the server stopped the tool after "},
		{"what stopped it", []string{"MCP_IDLE_TIMEOUT=0.5"}, own("hang"), 124, "", "idle, exit code 124, limits: total 1m0s, idle 500ms, longest silence "},
		{"the tool fails", nil, own("run_command", fails), 1, "exit code: 3\n\nout\n", "the tool failed after "},
		{"no such tool", nil, own("nothing"), 1, "", "unknown tool"},
		{"nobody to ask", nil, own("approve", `{"action":"x"}`), 1, "does not support elicitation", "failed"},
		{"patient", nil, append([]string{"-timeout", "9s"}, own("run_command", slow)...), 0, "7\n8\n", "progress: 2 2\n"},
		{"not patient", nil, append([]string{"-timeout", "2s", "-reset-on-progress=false"}, own("run_command", slow)...), 124, "", "Request timed out"},
		{"silent", nil, append([]string{"-timeout", "1s"}, own("hang")...), 124, "", "Request timed out: no progress for 1s"},
		{"no limit", nil, append([]string{"-timeout", "0"}, own("run_command", slow)...), 0, "8\n", "succeeded"},
		{"cap", nil, append([]string{"-timeout", "9s", "-max-total", "11s"}, own("run_command", slow)...), 124, "", "Maximum total timeout exceeded"},
		{"not found", nil, []string{"hang", "--", "no-such-command"}, 127, "", "not found"},
		{"no server", nil, []string{"hang", "--", "true"}, 1, "", "connecting"},
		{"nobody listens", nil, []string{"-url", "http://127.0.0.1:1/mcp", "hang"}, 1, "", "refused"},
		{"no tool", nil, own(), 2, "", "want TOOL"},
		{"no server named", nil, []string{"hang"}, 2, "", "want a server"},
		{"two servers", nil, append([]string{"-url", "http://127.0.0.1:1"}, own("hang")...), 2, "", "want a server"},
		{"not JSON", nil, own("hang", "{"), 2, "", "want a JSON object"},
		{"not an object", nil, own("hang", "[]"), 2, "", "want a JSON object"},
		{"help", nil, []string{"-help"}, 0, "", "Usage: mcpclient"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cmd, _ := program(t, tc.env, tc.args...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if code := cmd.ProcessState.ExitCode(); code != tc.code || !strings.Contains(stdout.String(), tc.stdout) || !strings.Contains(stderr.String(), tc.stderr) {
				t.Errorf("exit code %d, want %d, %q and %q\nstdout: %s\nstderr: %s", code, tc.code, tc.stdout, tc.stderr, &stdout, &stderr)
			}
		})
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
	cmd, _ := program(t, nil, "-wait-for-server", "-url", url, "hang")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
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

// sleeper is a call of a tool that leaves a file when there are two sleeps.
func sleeper(begun string) string {
	return fmt.Sprintf(`{"command":"sh","args":["-c","echo begun; setsid sleep 600 & touch %s; exec sleep 600"]}`, begun)
}

// SPEC 3.11: Ctrl-C and the limits of the client stop the tool at the server, at once.
func TestStopsTheTool(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc, to see what runs")
	}
	t.Parallel()
	for _, protocol := range []string{"2025-11-25", "2026-07-28"} {
		for _, tc := range []struct {
			name  string
			flags []string
			end   os.Signal
			code  int
		}{
			{"Ctrl-C", nil, os.Interrupt, 130},
			{"limit", []string{"-timeout", "20s"}, nil, 124}, // until then the tool must have begun
			{"killed", nil, os.Kill, -1},
		} {
			for _, transport := range []string{"stdio", "http"} {
				t.Run(protocol+" "+tc.name+" "+transport, func(t *testing.T) {
					t.Parallel()
					args, begun := append([]string{"-protocol", protocol}, tc.flags...), filepath.Join(t.TempDir(), "begun")
					var env []string
					if tc.end == os.Kill && protocol == "2025-11-25" {
						env = []string{"RUN_COMMAND_TIMEOUT_MS=20000"} // over HTTP nobody else stops it
					}
					url, servers := overHTTP(t, env...)
					if transport == "http" {
						args = append(args, "-url", url, "run_command", sleeper(begun))
					} else {
						args = append(args, own("run_command", sleeper(begun))...)
					}
					cmd, mark := program(t, nil, args...)
					if err := cmd.Start(); err != nil {
						t.Fatal(err)
					}
					tree := func() int {
						n := 0
						for _, line := range append(leftovers.With(mark), leftovers.With(servers)...) {
							if strings.HasPrefix(line, "sleep 600") {
								n++
							}
						}
						return n
					}
					// Not by what runs: on a busy machine it takes seconds to see that, and it may be over.
					eventually(t, func() bool { _, err := os.Stat(begun); return err == nil })
					if tc.end != nil {
						if err := cmd.Process.Signal(tc.end); err != nil {
							t.Error(err)
						}
					}
					_ = cmd.Wait()
					if code := cmd.ProcessState.ExitCode(); code != tc.code {
						t.Errorf("exit code %d", code)
					}
					eventually(t, func() bool { return tree() == 0 })
				})
			}
		}
	}
}
