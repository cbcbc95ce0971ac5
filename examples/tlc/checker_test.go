package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 3.12, 5.1, 6.1, 6.4, 6.6, 6.8: a tree that ignores the request to end is killed, and what it has said is there.
func TestDeafTreeIsKilled(t *testing.T) {
	t.Parallel()
	ctx := deadline{t.Context(), make(chan struct{})}
	f, out, err := call(ctx, fakeSpin(t, "deaf"), search{}, aModel, func() { close(ctx.passed) })
	if !errors.Is(err, timeout.ErrTotal) || timeout.ExitCode(err) != timeout.ExitTimeout || f.result == nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if r := f.result; r.Reason != procgroup.TotalTimeout || r.Survivors != nil || !strings.HasPrefix(r.Message, "Spin process timed out after ") {
		t.Errorf("%v, survivors %v, message %q", r.Reason, r.Survivors, r.Message)
	}
	wants := []string{"partial output of pan", "progress", "| Depth="}
	if runtime.GOOS != "windows" { // there is no request to end that could be ignored
		wants = append(wants, "did not, and was killed")
	}
	for _, want := range wants {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}

// SPEC 3.11, 6.8.
func TestAbort(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	f, _, err := call(ctx, fakeSpin(t, "deaf"), search{}, aModel, cancel)
	if !errors.Is(err, timeout.ErrAborted) || timeout.ExitCode(err) != timeout.ExitAborted {
		t.Errorf("%v", err)
	}
	if f.result == nil || f.result.Message != "Spin process was aborted." || f.result.Stdout.Total == 0 {
		t.Errorf("%+v", f.result)
	}
	if got := describe(f, err); got != "Spin process was aborted." {
		t.Error(got)
	}
}

// SPEC 6.3.
func TestFloodIsBounded(t *testing.T) {
	t.Parallel()
	f, _, err := call(t.Context(), fakeSpin(t, "flood"), search{}, aModel, nil)
	if err != nil || f.result == nil {
		t.Fatalf("%v, %v", err, f.result)
	}
	o := f.result.Stdout
	if kept := int64(len(o.Bytes())); kept != maxOutput || o.Dropped != o.Total-kept {
		t.Errorf("%d bytes kept of %d, %d dropped", kept, o.Total, o.Dropped)
	}
}

// SPEC 5.1.
func TestCrash(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals there")
	}
	t.Parallel()
	_, out, err := call(t.Context(), fakeSpin(t, "crash"), search{}, aModel, nil)
	if timeout.ExitCode(err) != 137 || !strings.Contains(out, "signal: killed") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// What ends the program ends the tree.
func TestSignals(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a test cannot send Ctrl-C to one process there")
	}
	for name, end := range map[string]func(p *os.Process, stdout io.Closer) error{
		"Ctrl-C":                func(p *os.Process, _ io.Closer) error { return p.Signal(os.Interrupt) },
		"nobody reads (| head)": func(_ *os.Process, stdout io.Closer) error { return stdout.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, cmd := t.TempDir(), harness.Command("tlc", "explore")
			cmd.Env = append(cmd.Env, "TMPDIR="+dir, "TMP="+dir, fakeMode+"=deaf", "SPIN="+self(t), "CC="+self(t))
			stdout, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			var seen strings.Builder
			ended := false
			for lines := bufio.NewScanner(io.TeeReader(stdout, &seen)); lines.Scan(); {
				if !ended && strings.Contains(lines.Text(), "progress") {
					ended = true
					if err := end(cmd.Process, stdout); err != nil {
						t.Error(err)
					}
				}
			}
			if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != timeout.ExitAborted {
				t.Errorf("%v after:\n%s", cmd.ProcessState, &seen)
			}
			nothingLeft(t, dir)
		})
	}
}

// Each call of the demo ends as it says, with a Spin that answers as the model demands.
func TestDemo(t *testing.T) {
	t.Parallel()
	limits := limitsOfDemo{idle: 2 * time.Second, total: 500 * time.Millisecond, every: time.Millisecond}
	var buf bytes.Buffer
	err := demo(t.Context(), fakeSpin(t, "demo"), limits, &printer{w: &buf})
	got := regexp.MustCompile(`(?m)^   exit code +(\d+)$`).FindAllStringSubmatch(buf.String(), -1)
	for i, want := range []string{"0", "12", "124", "124", "130", "1", "127"} {
		if i >= len(got) || got[i][1] != want {
			t.Errorf("call %d: %v, want exit code %s", i+1, got, want)
		}
	}
	if err != nil || !strings.Contains(buf.String(), "log         level=WARN") {
		t.Errorf("%v\n%s", err, &buf)
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

func TestSpinVerdicts(t *testing.T) {
	complete := search{depth: 100_000, complete: true, reportEvery: 1_000_000}
	for name, tc := range map[string]struct {
		model  string
		search search
		code   int
		want   []string
	}{
		"correct":     {"correct", complete, 0, []string{"everything was searched"}},
		"deadlock":    {"deadlock", complete, 12, []string{"the model is wrong: deadlock", "the way into the error", "proc  4 (philosopher:1)"}},
		"assertion":   {"assertion", complete, 12, []string{"the model is wrong: assertion violated", "counter = 5"}},
		"too deep":    {"huge", search{depth: 20, complete: true}, 1, []string{"not complete: there is more below the depth limit"}},
		"smoke":       {"huge", tools["smoke"].search, 0, []string{"not everything was searched", "to depth 99"}},
		"not Promela": {"models.go", complete, 1, []string{"spin -a model.pml failed: exit status 1", "Error: syntax error"}},
		// SPEC 5.2: a search that was stopped reports, and ends with 0; the exit code is 124.
		"stopped": {"huge", search{depth: 1_000_000, bitstate: true, reportEvery: 100_000}, 124, []string{
			"progress ", "Spin process timed out after ", "| Interrupted", "asked to end, and did (exit status 0)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, ctx, end := realSpin(t), deadline{t.Context(), make(chan struct{})}, func() {}
			c.killGrace = time.Minute
			if name == "stopped" {
				end = func() { close(ctx.passed) }
			}
			m, err := loadModel([]string{tc.model}, "")
			if err != nil {
				t.Fatal(err)
			}
			_, out, err := call(ctx, c, tc.search, m, end)
			if code := timeout.ExitCode(err); code != tc.code {
				t.Errorf("%v, exit code %d, want %d:\n%s", err, code, tc.code, out)
			}
			for _, want := range tc.want {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in:\n%s", want, out)
				}
			}
		})
	}
}
