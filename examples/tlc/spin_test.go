package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

func TestSpinVerdicts(t *testing.T) {
	t.Parallel()
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
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, out, err := call(t.Context(), t, realSpin(t), tc.search, mustLoad(t, tc.model), timeout.Config{Total: generous})
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

// SPEC 5.2: a search that was stopped reports, and ends with 0; the exit code is 124.
func TestSpinStopped(t *testing.T) {
	t.Parallel()
	c, m := realSpin(t), mustLoad(t, "huge")
	for total := 4 * time.Second; ; total *= 2 { // the compiler needs a part of it, which may be all of it
		ctx, cancel := context.WithTimeout(t.Context(), total) // SPEC 3.12
		f, out, err := call(ctx, t, c, search{depth: 1_000_000, bitstate: true, reportEvery: 100_000}, m, timeout.Config{})
		cancel()
		if !errors.Is(err, timeout.ErrTotal) || timeout.ExitCode(err) != timeout.ExitTimeout {
			t.Fatalf("%v", err)
		}
		if !strings.Contains(out, "progress ") && total < generous {
			continue
		}
		if !f.summary.found || f.summary.states == 0 || f.result.State.ExitCode() != 0 {
			t.Errorf("%+v, %v", f.summary, f.result.State)
		}
		for _, want := range []string{"progress ", "Spin process timed out after ", "| Interrupted", "asked to end, and did (exit status 0)"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in:\n%s", want, out)
			}
		}
		return
	}
}

func TestDemo(t *testing.T) {
	t.Parallel()
	c := realSpin(t)
	for scale := time.Duration(1); ; scale *= 2 {
		limits := demoLimits
		limits.idle, limits.total = 3*time.Second*scale, 6*time.Second*scale
		var buf bytes.Buffer
		err := demo(t.Context(), c, limits, &printer{w: &buf})
		wrong := wrongInDemo(limits, buf.String())
		if err == nil && wrong == nil {
			return
		}
		if limits.total > generous/2 || t.Context().Err() != nil {
			t.Fatalf("%v\n%s\n%s", err, strings.Join(wrong, "\n"), &buf)
		}
	}
}

// wrongInDemo returns which lines the calls of the demo lack. On a busy machine the compiler may
// use up a limit, so that there is no search.
func wrongInDemo(limits limitsOfDemo, out string) (wrong []string) {
	calls := regexp.MustCompile(`(?m)^\d\. `).Split(out, -1)
	for i, lines := range [][]string{
		{},
		{`result +no error found, and everything was searched`, `exit code +0`},
		{`result +the model is wrong: deadlock`, `exit code +12`, `the way into the error`},
		{fmt.Sprintf(`result +Spin process timed out after %dms without output\.`, limits.idle.Milliseconds()), `exit code +124`},
		{`log +level=WARN`, `progress +\d`, fmt.Sprintf(`result +Spin process timed out after %dms\.`, limits.total.Milliseconds()), `exit code +124`, `partial output`},
		{`progress +\d`, `result +Spin process was aborted\.`, `exit code +130`, `partial output`},
		{`result +spin -a model.pml failed: exit status 1`, `exit code +1$`},
		{`result +exec: "spin-that-is-not-there"`, `exit code +127`},
	} {
		for _, line := range lines {
			if i >= len(calls) || !regexp.MustCompile(`(?m)^   `+line).MatchString(calls[i]) {
				wrong = append(wrong, fmt.Sprintf("call %d has no line %q", i, line))
			}
		}
	}
	return wrong
}
