package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// fakeSpin is workshop with fakes.
func fakeSpin(t *testing.T, mode string) *checker {
	t.Helper()
	c := workshop(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c.spin, c.cc, c.env = exe, exe, []string{fakeMode + "=" + mode}
	c.killGrace = 200 * time.Millisecond
	return c
}

var aModel = model{"any", []byte("active proctype A() { skip }")}

// SPEC 6.2: any output is a heartbeat, newline or not.
func TestOutputKeepsAlive(t *testing.T) {
	t.Parallel()
	f, _, err := call(t.Context(), t, fakeSpin(t, "drips"), search{}, aModel, timeout.Config{Idle: 12 * time.Second}) // within which a slow machine has started each program
	if err != nil || f.summary.states != 42 {
		t.Errorf("%v, %+v", err, f.summary)
	}
}

// SPEC 5.1, 6.1, 6.4, 6.6, 6.8.
func TestDeafTreeIsKilled(t *testing.T) {
	t.Parallel()
	c, total := fakeSpin(t, "deaf"), 8*time.Second
	f, out, err := call(t.Context(), t, c, search{}, aModel, timeout.Config{Total: total})
	for !strings.Contains(out, "progress") && total < generous { // on a slow machine it may not have begun
		total *= 2
		f, out, err = call(t.Context(), t, c, search{}, aModel, timeout.Config{Total: total})
	}
	if !errors.Is(err, timeout.ErrTotal) || timeout.ExitCode(err) != timeout.ExitTimeout {
		t.Errorf("%v", err)
	}
	if f.result == nil {
		t.Fatalf("no result:\n%s", out)
	}
	if r := f.result; r.Reason != procgroup.TotalTimeout || r.Survivors != nil || r.Message != fmt.Sprintf("Spin process timed out after %dms.", total.Milliseconds()) {
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

// SPEC 6.3.
func TestFloodIsBounded(t *testing.T) {
	t.Parallel()
	c, total := fakeSpin(t, "flood"), 8*time.Second
	f, _, err := call(t.Context(), t, c, search{}, aModel, timeout.Config{Total: total})
	for (f.result == nil || f.result.Stdout.Total <= maxOutput) && total < generous { // on a slow machine it may not have written as much
		total *= 2
		f, _, err = call(t.Context(), t, c, search{}, aModel, timeout.Config{Total: total})
	}
	if !errors.Is(err, timeout.ErrTotal) || f.result == nil {
		t.Fatalf("%v, %v", err, f.result)
	}
	o := f.result.Stdout
	if kept := int64(len(o.Bytes())); kept != maxOutput || o.Dropped != o.Total-kept {
		t.Errorf("%d bytes kept of %d, %d dropped", kept, o.Total, o.Dropped)
	}
}

// SPEC 3.11, 6.8.
func TestAbort(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var buf strings.Builder
	out := &printer{w: &buf}
	out.onProgress(cancel)
	f, err := tool{name: "tlc_test"}.call(ctx, calledWith(timeout.Config{}), fakeSpin(t, "deaf"), aModel, out)
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

// SPEC 5.1.
func TestCrash(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals there")
	}
	t.Parallel()
	_, out, err := call(t.Context(), t, fakeSpin(t, "crash"), search{}, aModel, timeout.Config{})
	if timeout.ExitCode(err) != 137 || !strings.Contains(out, "signal: killed") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// What ends the program ends the tree.
func TestSignals(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a test cannot send Ctrl-C to one process there")
	}
	t.Parallel()
	for name, end := range map[string]func(p *os.Process, stdout io.Closer) error{
		"Ctrl-C":                func(p *os.Process, _ io.Closer) error { return p.Signal(os.Interrupt) },
		"nobody reads (| head)": func(_ *os.Process, stdout io.Closer) error { return stdout.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cmd := program(t, dir, fakeTools(t, "deaf"), "explore")
			stdout, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer stdout.Close()
			cmd.Stdout = w
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			w.Close()
			var seen strings.Builder
			lines := bufio.NewScanner(io.TeeReader(stdout, &seen))
			ended := false
			for lines.Scan() {
				if !ended && strings.Contains(lines.Text(), "progress") {
					ended = true
					if err := end(cmd.Process, stdout); err != nil {
						t.Error(err)
					}
				}
			}
			if code := exitCode(t, cmd.Wait()); code != timeout.ExitAborted {
				t.Errorf("exit code %d after:\n%s", code, &seen)
			}
			nothingLeft(t, dir)
		})
	}
}
