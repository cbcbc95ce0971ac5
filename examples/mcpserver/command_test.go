package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// tree ignores the request to end, and so does what it starts, some of it in a session of its own.
const tree = `trap '' TERM; (setsid sleep 600 >/dev/null 2>&1 &) ; sleep 600 & echo begun; touch begun; wait; sleep 600`

func script(t *testing.T, text string) runInput {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	return runInput{Command: "sh", Args: []string{"-c", text}}
}

// ran runs a command in a call of its own, and returns the texts of the result, or of the error. When the command has
// made the file "begun", the clock of the limits moves, or where pass is negative the call is aborted.
func ran(t *testing.T, in runInput, pass time.Duration) (all []string, outcome []any) {
	t.Helper()
	if in.Dir == "" {
		in.Dir = t.TempDir()
	}
	ctx, abort := context.WithCancel(t.Context())
	defer abort()
	mock := clock.NewMock()
	if pass != 0 {
		go func() {
			harness.Eventually(t, "the command to begin", func() bool { _, err := os.Stat(filepath.Join(in.Dir, "begun")); return err == nil })
			if pass < 0 {
				abort()
			}
			mock.Add(max(pass, 0))
		}()
	}
	server := &toolcall.Settings{Limits: limits(time.Minute, nil).Tools["run_command"].Limits, Options: []timeout.Setting{timeout.WithClock(mock)}}
	call := toolcall.Call{Tool: "run_command"}
	_, err := toolcall.Do(ctx, server, call, func(ctx context.Context) (any, error) {
		res, _, err := runCommand(ctx, nil, in)
		if err == nil {
			all = texts(res)
			if o, stopped := res.Meta[toolcall.OutcomeKey].(toolcall.Outcome); stopped {
				outcome = []any{o.Kind, o.ExitCode}
			}
		}
		return nil, err
	})
	if all == nil {
		all = []string{err.Error()}
	}
	return all, outcome
}

// SPEC 3.11, 5.1, 6.1, 6.2, 6.6, 6.8, 7.1, 7.7: exit code, output and progress; the text of a command that is stopped,
// the partial output, and no process, which the end of the suite sees to.
func TestRunCommand(t *testing.T) {
	for _, tc := range []struct {
		name, script string
		passes       time.Duration
		want         []string
		outcome      []any
	}{
		{"exit code", "echo one; echo two >&2; printf three; exit 3", 0, []string{"exit code: 3\n\none\ntwo\nthree"}, nil},
		{"idle limit", "echo begun; touch begun; exec sleep 600", 2 * time.Minute, []string{"sh process timed out after 120000ms without output.", "Partial output:\nbegun\n"}, []any{"idle", 124}},
		{"abort", tree, -1, []string{"sh process was aborted.", "Partial output:\nbegun\n"}, []any{"aborted", 130}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, o := ran(t, script(t, tc.script), tc.passes)
			if d := cmp.Diff(tc.want, got) + cmp.Diff(tc.outcome, o); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestRunCommandDoesNotStart(t *testing.T) {
	for want, in := range map[string]runInput{
		"(exit code: 127)":      {Command: "no-such-command"},
		"/no/such/":             {Command: "/no/such/command"},
		"(exit code: 126)":      {Command: "/"},
		"dir: stat no-such-dir": {Command: "go", Dir: "no-such-dir"},
	} {
		if got, _ := ran(t, in, 0); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("want %s, got %q", want, got)
		}
	}
	eachProtocol(t, options{}, nil, func(t *testing.T, c *client, _ string) {
		for want, args := range map[string]map[string]any{"missing": {}, "timeoutMs=\"0\"": {"command": "go", "timeoutMs": 0}} {
			if res, got := c.must(t, "run_command", args); !res.IsError || !strings.Contains(got[0], want) {
				t.Errorf("want %s, got %q", want, got)
			}
		}
	})
}

func TestCut(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"", ""}, {"abcd", "abcd"}, {"abcde", "abcd..."}, {"abcé", "abc..."}, {"abé", "abé"},
	} {
		if got := cut(tc.in, 4); got != tc.want {
			t.Errorf("%q: %q, want %q", tc.in, got, tc.want)
		}
	}
}
