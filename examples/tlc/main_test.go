package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// Steps of seconds may take this long on a very busy machine.
const generous = 2 * time.Minute

// The test binary is also the program, and Spin, the compiler and the verifier.
func TestMain(m *testing.M) {
	// Otherwise each of them waits for a second at its end, under the race detector.
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	if os.Getenv(asMain) != "" && len(os.Args) > 1 {
		if _, ok := tools[os.Args[1]]; ok || os.Args[1] == "demo" || os.Args[1] == "serve" {
			main()
		}
	}
	if mode := os.Getenv(fakeMode); mode != "" {
		fake(mode)
	}
	os.Exit(m.Run())
}

// workshop returns a checker whose temporary files are below a directory of its own. At
// the end of the test no file must be left there, and no process that works there.
func workshop(t *testing.T) *checker {
	t.Helper()
	c := newChecker(os.LookupEnv)
	c.tempDir = t.TempDir()
	t.Cleanup(func() { nothingLeft(t, c.tempDir) })
	return c
}

func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("left behind: %v %v", files, err)
	}
	cwds, _ := filepath.Glob("/proc/[0-9]*/cwd") // there are none but on Linux
	for _, cwd := range cwds {
		if at, err := os.Readlink(cwd); err == nil && strings.HasPrefix(at, dir) {
			t.Errorf("left behind: %s is at %s", cwd, at)
		}
	}
}

// realSpin is workshop with Spin and a C compiler, where they are installed.
func realSpin(t *testing.T) *checker {
	t.Helper()
	if testing.Short() {
		t.Skip("runs Spin and the C compiler for seconds; run without -short")
	}
	c := workshop(t)
	c.optimize = "-O0" // compiles in a third of the time
	if err := c.find(); err != nil {
		t.Skipf("needs Spin and a C compiler (apt-get install spin gcc): %v", err)
	}
	return c
}

func mustLoad(t *testing.T, name string) model {
	t.Helper()
	m, err := loadModel([]string{name}, "")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// calledWith has these limits, whatever the environment says.
func calledWith(limits timeout.Config) caller {
	if limits.Grace == 0 {
		limits.Grace = generous // on a busy machine it takes a while until a tree is dead
	}
	return caller{
		policy: &policy.Policy{Default: &limits, Lookup: func(string) (string, bool) { return "", false }},
		every:  time.Millisecond,
	}
}

// call runs a tool and returns its findings and its output.
func call(ctx context.Context, t *testing.T, c *checker, s search, m model, limits timeout.Config) (finding, string, error) {
	t.Helper()
	var b bytes.Buffer
	out := &printer{w: &b}
	f, err := tool{name: "tlc_test", search: s}.call(ctx, calledWith(limits), c, m, out)
	out.finding(f, err)
	out.output(f, false)
	if t.Context().Err() != nil {
		t.Fatal("the test was over first")
	}
	return f, b.String(), err
}

// program is the program itself, with the temporary files where nothingLeft looks.
func program(t *testing.T, tempDir string, env []string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), generous)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Env = append(cmd.Environ(), asMain+"=1", "TMPDIR="+tempDir, "TMP="+tempDir)
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// fakeTools make the program use the fakes.
func fakeTools(t *testing.T, mode string) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{fakeMode + "=" + mode, "SPIN=" + exe, "CC=" + exe}
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return timeout.ExitCode(err)
}

// The exit codes, as the shell sees them.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	broken := filepath.Join(t.TempDir(), "spin")
	if err := os.WriteFile(broken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		mode string
		env  []string
		args []string
		code int
		want string // in stdout or stderr
	}{
		"fine":             {"fine", nil, []string{"check"}, 0, "no error found, and everything was searched"},
		"error in model":   {"wrong", nil, []string{"smoke"}, 12, "the model is wrong: assertion violated"},
		"incomplete check": {"incomplete", nil, []string{"check"}, 1, "the check is not complete"},
		"incomplete smoke": {"incomplete", nil, []string{"smoke"}, 0, "not everything was searched"},
		"its own code":     {"fails", nil, []string{"smoke"}, 3, "failed: exit status 3"},
		"no summary":       {"mute", nil, []string{"smoke"}, 1, "printed no summary"},
		"total":            {"silent", []string{"TLC_SMOKE_TIMEOUT_MS=4000"}, []string{"smoke"}, 124, "Spin process timed out after 4000ms."},
		"request":          {"silent", nil, []string{"check", "-timeout-ms", "4000"}, 124, "Spin process timed out after 4000ms."},
		"idle":             {"silent", []string{"MCP_IDLE_TIMEOUT=1.5"}, []string{"explore"}, 124, "No progress for 1.5s (idle timeout). Tool should call heartbeat() during long work."},
		"not found":        {"fine", []string{"SPIN=no-such-spin"}, []string{"check"}, 127, "apt-get install spin gcc"},
		"no compiler":      {"fine", []string{"CC=no-such-cc"}, []string{"check"}, 127, "apt-get install spin gcc"},
		"not executable":   {"fine", []string{"SPIN=" + broken}, []string{"check"}, 126, "permission denied"},
		"not found, demo":  {"fine", []string{"SPIN=no-such-spin"}, []string{"demo"}, 127, "apt-get install spin gcc"},
		"bad setting":      {"fine", []string{"TLC_SMOKE_TIMEOUT_MS=soon"}, []string{"smoke"}, 2, `TLC_SMOKE_TIMEOUT_MS="soon"`},
		"bad request":      {"fine", nil, []string{"smoke", "-timeout-ms", "0"}, 2, "from 1 to"},
		"no such model":    {"fine", nil, []string{"smoke", "nowhere.pml"}, 2, `no file "nowhere.pml"`},
		"two models":       {"fine", nil, []string{"smoke", "correct", "huge"}, 2, "at most one MODEL"},
		"demo takes none":  {"fine", nil, []string{"demo", "correct"}, 2, "demo takes no arguments"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS == "windows" && tc.code == 126 {
				t.Skip("there is no permission to execute there")
			}
			dir := t.TempDir()
			cmd := program(t, dir, append(fakeTools(t, tc.mode), tc.env...), tc.args...)
			out, err := cmd.CombinedOutput()
			if code := exitCode(t, err); code != tc.code || !strings.Contains(string(out), tc.want) {
				t.Errorf("exit code %d, want %d and %q in:\n%s", code, tc.code, tc.want, out)
			}
			nothingLeft(t, dir)
		})
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for code, args := range map[int][]string{0: {"help"}, exitUsage: nil} {
		var stderr bytes.Buffer
		if got := run(t.Context(), args, io.Discard, &stderr); got != code || !strings.Contains(stderr.String(), "usage: tlc") {
			t.Errorf("%q: exit code %d, want %d:\n%s", args, got, code, &stderr)
		}
	}
	if got := run(t.Context(), []string{"simulate"}, io.Discard, io.Discard); got != exitUsage {
		t.Errorf("exit code %d", got)
	}
}
