package main

import (
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/internal/leftovers"
)

// sh returns the arguments to run a script.
func sh(t *testing.T, script string) map[string]any {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	return map[string]any{"command": "sh", "args": []string{"-c", script}}
}

// tree ignores the request to end, and so does what it starts, some of it in a session of
// its own.
const tree = `trap '' TERM; echo begun; (setsid sleep 600 >/dev/null 2>&1 &) ; sleep 600 & wait; sleep 600`

// SPEC 5.1, 6.2, 7.1: exit code, output, and a progress message for each line.
func TestRunCommand(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		c := w.connect(t, nil, nil)
		res, got := c.must(t, "run_command", sh(t, "echo one; sleep 1; echo two >&2; sleep 4; printf three; exit 3"))
		if d := cmp.Diff([]string{"exit code: 3\n\none\ntwo\nthree"}, got); d != "" || !res.IsError || outcome(t, res) != nil {
			t.Errorf("isError %v, %v\n%s", res.IsError, outcome(t, res), d)
		}
		eventually(t, func() bool { // the SDK may handle them after the result
			all := c.messages(t)
			return slices.Index(all, "one") < slices.Index(all, "two") // a newer one takes the place of one that waits
		})
		args := sh(t, "pwd")
		args["dir"] = "/"
		if res, got := c.must(t, "run_command", args); res.IsError || got[0] != "exit code: 0\n\n/\n" {
			t.Errorf("isError %v: %q", res.IsError, got)
		}
	})
}

func TestRunCommandDoesNotStart(t *testing.T) {
	t.Parallel()
	c := ways[0].connect(t, nil, nil)
	for want, args := range map[string]map[string]any{
		"(exit code: 127)":      {"command": "no-such-command"},
		"/no/such/":             {"command": "/no/such/command"},
		"(exit code: 126)":      {"command": "/"},
		"dir: stat no-such-dir": {"command": "go", "dir": "no-such-dir"},
		"missing":               {},
		"timeoutMs=\"0\"":       {"command": "go", "timeoutMs": 0},
	} {
		if res, got := c.must(t, "run_command", args); !res.IsError || !strings.Contains(got[0], want) {
			t.Errorf("want %s, got %q", want, got)
		}
	}
}

// SPEC 6.3: the last of the output, and how much is missing.
func TestRunCommandFlood(t *testing.T) {
	t.Parallel()
	c := ways[0].connect(t, nil, nil)
	_, got := c.must(t, "run_command", sh(t, "yes | head -c 1000000; echo end"))
	const left = 1000004 - maxOutput
	if !strings.HasPrefix(got[0], "exit code: 0\n\n[934468 bytes left out]\n") || left != 934468 ||
		!strings.HasSuffix(got[0], "y\nend\n") || len(got[0]) > maxOutput+100 {
		t.Errorf("%d bytes: %.60q", len(got[0]), got[0])
	}
}

// stillRunning is what has been killed, and on a busy machine has got no processor to end yet.
var stillRunning = regexp.MustCompile(`\n\[still running: \[[\d ]+\]\]$`)

// SPEC 6.6, 6.8, 7.7: the text of the command, the partial output, and no process.
func TestRunCommandLimit(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		c := w.connect(t, nil, []string{"MCP_IDLE_TIMEOUT=14"}) // within which a slow machine has started it
		args := sh(t, tree)
		res, got := c.must(t, "run_command", args)
		for tries := 0; tries < 2 && len(got) == 1; tries++ { // to kill it took a busy machine longer than the grace
			res, got = c.must(t, "run_command", args)
		}
		got[len(got)-1] = stillRunning.ReplaceAllString(got[len(got)-1], "")
		want := []string{"sh process timed out after 14000ms without output.", "Partial output:\nbegun\n"}
		if d := cmp.Diff(want, got); d != "" || !res.IsError {
			t.Errorf("isError %v\n%s", res.IsError, d)
		}
		if d := cmp.Diff([]any{"idle", 124.0, 600e3, 14000.0}, outcome(t, res)); d != "" {
			t.Error(d)
		}
		noCommand(t, c)

		args = sh(t, "while echo again; do sleep .1; done")
		args["timeoutMs"] = 13000
		res, got = c.must(t, "run_command", args)
		if len(got) != 2 || !strings.HasPrefix(got[0], "sh process timed out after 13000ms.") || !strings.HasPrefix(got[1], "Partial output:\nagain\n") || !res.IsError {
			t.Errorf("isError %v: %q", res.IsError, got)
		}
		if d := cmp.Diff([]any{"total", 124.0, 13000.0, 13000.0}, outcome(t, res)); d != "" {
			t.Error(d)
		}
		noCommand(t, c)

		// Of a command that has printed nothing there is no partial output.
		args = sh(t, "echo; sleep 600")
		args["timeoutMs"] = 13000
		res, got = c.must(t, "run_command", args)
		if len(got) == 2 && stillRunning.MatchString(got[1]) && strings.TrimSpace(stillRunning.ReplaceAllString(got[1], "")) == "Partial output:" {
			got = got[:1]
		}
		if len(got) != 1 || !strings.HasPrefix(got[0], "sh process timed out after 13000ms.") || !res.IsError {
			t.Errorf("isError %v: %q", res.IsError, got)
		}
		noCommand(t, c)
	})
}

// SPEC 3.11, 6.1, 7.8: an aborted call leaves no process, and the server goes on.
func TestRunCommandAbort(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		c := w.connect(t, nil, nil)
		c.abort(t, "run_command", sh(t, tree), func() bool { return len(c.messages(t)) > 0 })
		noCommand(t, c)
		if _, got := c.must(t, "run_command", sh(t, "echo on")); got[0] != "exit code: 0\n\non\n" {
			t.Errorf("%q", got)
		}
	})
}

// noCommand waits until the server is the only process that is left of it.
func noCommand(t *testing.T, c *client) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return
	}
	eventually(t, func() bool { return len(leftovers.With(c.server.mark)) == 1 })
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
