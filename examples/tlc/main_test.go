package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// The test binary is also the program, and, where fakeMode says so, Spin, the compiler and the verifier.
func TestMain(m *testing.M) {
	if mode := os.Getenv(fakeMode); mode != "" && len(os.Args) > 1 && os.Getenv("HARNESS_MODE") == "" {
		fake(mode)
	}
	harness.Main(m, map[string]func(){"tlc": main}, harness.Options{Parallel: 4})
}

// workshop returns a checker whose temporary files are below a directory of its own. At the end of the test no file
// must be left there; processes are looked for at the end of the suite.
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
}

func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// fakeSpin is workshop with fakes.
func fakeSpin(t *testing.T, mode string) *checker {
	t.Helper()
	c := workshop(t)
	c.spin, c.cc, c.env = self(t), self(t), []string{fakeMode + "=" + mode}
	c.killGrace = 10 * time.Millisecond
	return c
}

var aModel = model{"any", []byte("active proctype A() { skip }")}

// calledWith has these limits, whatever the environment says.
func calledWith(limits timeout.Config) caller {
	limits.Grace = time.Hour
	return caller{
		policy: &policy.Policy{Default: &limits, Lookup: func(string) (string, bool) { return "", false }},
		every:  time.Millisecond,
	}
}

// A deadline is a context whose deadline passes when somebody says so.
type deadline struct {
	context.Context
	passed chan struct{}
}

func (d deadline) Done() <-chan struct{} { return d.passed }

func (d deadline) Err() error {
	select {
	case <-d.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// call runs a tool and returns its findings and its output. end, if it is not nil, is called when there is progress.
func call(ctx context.Context, c *checker, s search, m model, end func()) (finding, string, error) {
	var b bytes.Buffer
	out := &printer{w: &b}
	out.onProgress(end)
	f, err := tool{name: "tlc_test", search: s}.call(ctx, calledWith(timeout.Config{}), c, m, out)
	out.finding(f, err)
	out.output(f, false)
	return f, b.String(), err
}

// A stuck program is stopped while Spin runs, or before that on a very busy machine.
const stuck = "Spin process timed out after 50ms|Tool exceeded wall-clock limit of 0.05s."

// says reports whether a text has one of the alternatives.
func says(text, want string) bool {
	for one := range strings.SplitSeq(want, "|") {
		if strings.Contains(text, one) {
			return true
		}
	}
	return false
}

// The exit codes, as the shell sees them.
func TestExitCodes(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "spin")
	if err := os.WriteFile(broken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		mode       string
		key, value string // of the environment
		args       []string
		code       int
		want       string // in stdout or stderr
	}{
		"fine":             {"fine", "", "", []string{"check"}, 0, "no error found, and everything was searched"},
		"error in model":   {"wrong", "", "", []string{"smoke"}, 12, "the model is wrong: assertion violated"},
		"incomplete check": {"incomplete", "", "", []string{"check"}, 1, "the check is not complete"},
		"incomplete smoke": {"incomplete", "", "", []string{"smoke"}, 0, "not everything was searched"},
		"its own code":     {"fails", "", "", []string{"smoke"}, 3, "failed: exit status 3"},
		"no summary":       {"mute", "", "", []string{"smoke"}, 1, "printed no summary"},
		"total":            {"stuck", "TLC_SMOKE_TIMEOUT_MS", "50", []string{"smoke"}, 124, stuck},
		"request":          {"stuck", "", "", []string{"check", "-timeout-ms", "50"}, 124, stuck},
		"idle":             {"stuck", "MCP_IDLE_TIMEOUT", "0.05", []string{"explore"}, 124, "No progress for 0.05s (idle timeout). Tool should call heartbeat() during long work.|timed out after 50ms without output"},
		"not found":        {"fine", "SPIN", "no-such-spin", []string{"check"}, 127, "apt-get install spin gcc"},
		"no compiler":      {"fine", "CC", "no-such-cc", []string{"check"}, 127, "apt-get install spin gcc"},
		"not executable":   {"fine", "SPIN", broken, []string{"check"}, 126, "permission denied"},
		"not found, demo":  {"fine", "SPIN", "no-such-spin", []string{"demo"}, 127, "apt-get install spin gcc"},
		"bad setting":      {"fine", "TLC_SMOKE_TIMEOUT_MS", "soon", []string{"smoke"}, 2, `TLC_SMOKE_TIMEOUT_MS="soon"`},
		"serve, the same":  {"fine", "TLC_SMOKE_TIMEOUT_MS", "soon", []string{"serve"}, 2, `TLC_SMOKE_TIMEOUT_MS="soon"`},
		"bad request":      {"fine", "", "", []string{"smoke", "-timeout-ms", "0"}, 2, "from 1 to"},
		"no such model":    {"fine", "", "", []string{"smoke", "nowhere.pml"}, 2, `no file "nowhere.pml"`},
		"two models":       {"fine", "", "", []string{"smoke", "correct", "huge"}, 2, "at most one MODEL"},
		"demo takes none":  {"fine", "", "", []string{"demo", "correct"}, 2, "demo takes no arguments"},
		"no such tool":     {"fine", "", "", []string{"simulate"}, 2, "there is no tool"},
		"help":             {"fine", "", "", []string{"help"}, 0, "usage: tlc"},
		"nothing":          {"fine", "", "", nil, 2, "usage: tlc"},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" && tc.code == 126 {
				t.Skip("there is no permission to execute there")
			}
			dir := t.TempDir()
			for key, value := range map[string]string{"TMPDIR": dir, "TMP": dir, "SPIN": self(t), "CC": self(t), fakeMode: tc.mode} {
				t.Setenv(key, value)
			}
			if tc.key != "" {
				t.Setenv(tc.key, tc.value)
			}
			var out bytes.Buffer
			if code := run(t.Context(), tc.args, &out, &out); code != tc.code || !says(out.String(), tc.want) {
				t.Errorf("exit code %d, want %d and %q in:\n%s", code, tc.code, tc.want, &out)
			}
			nothingLeft(t, dir)
		})
	}
}
