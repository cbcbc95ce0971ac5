//go:build linux

package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// A typed text is typed when a text is shown, after a while.
type typed struct {
	when, text string
	after      time.Duration
}

// onTerminal runs the client on a terminal of its own, and returns all that it showed.
func onTerminal(t *testing.T, keys []typed, args ...string) (shown string, code int) {
	t.Helper()
	cmd, _ := program(t, nil, args...)
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 100})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	var all strings.Builder
	seen := 0 // up to where it has been answered
	buf := make([]byte, 4096)
	for {
		n, err := terminal.Read(buf)
		all.Write(buf[:n])
		for len(keys) > 0 {
			at := strings.Index(all.String()[seen:], keys[0].when)
			if at < 0 {
				break
			}
			seen += at + len(keys[0].when)
			time.Sleep(keys[0].after) // the client needs nothing to be read meanwhile
			_, _ = io.WriteString(terminal, keys[0].text)
			keys = keys[1:]
		}
		if err != nil {
			break // EIO, when the last user of the terminal has gone
		}
	}
	_ = cmd.Wait()
	if len(keys) > 0 {
		t.Errorf("%q was not shown", keys[0].when)
	}
	return all.String(), cmd.ProcessState.ExitCode()
}

// SPEC 7.9: a question of the server reaches the terminal.
func TestAsks(t *testing.T) {
	t.Parallel()
	const prompt = "Approve (y/n)? "
	for _, tc := range []struct {
		name  string
		keys  []typed
		flags []string // of the server
		code  int
		want  string
	}{
		{"yes", []typed{{prompt, "y\n", 0}}, nil, 0, "Approved: rm -r build"},
		{"no", []typed{{prompt, "no\n", 0}}, nil, 0, "Denied: rm -r build"},
		{"neither, then yes", []typed{{prompt, "maybe\n", 0}, {prompt, "Yes\n", 0}}, nil, 0, "Approved: rm -r build"},
		{"Ctrl-D", []typed{{prompt, "\x04", 0}}, nil, 0, "Nothing was decided about: rm -r build"},
		// The server, on the same terminal, is interrupted too, and its answer may come first.
		{"Ctrl-C", []typed{{prompt, "\x03", 0}}, nil, 130, ""},
		{"too late", []typed{{prompt, "y\n", 13 * time.Second}}, []string{"-approval-limit", "10s"}, 124,
			"Command timed out waiting for approval. Consider approving faster or configuring a longer timeout."},
	} {
		for _, protocol := range []string{"2025-11-25", "2026-07-28"} {
			t.Run(tc.name+" "+protocol, func(t *testing.T) {
				t.Parallel()
				args := append([]string{"-protocol", protocol}, own("approve", `{"action":"rm -r build"}`)...)
				shown, code := onTerminal(t, tc.keys, append(args, tc.flags...)...)
				if code != tc.code || !strings.Contains(shown, "The server asks: rm -r build") || !strings.Contains(shown, tc.want) {
					t.Errorf("exit code %d, want %d and %q in:\n%q", code, tc.code, tc.want, shown)
				}
			})
		}
	}
}

// The question ends with the call also where the server cannot say so.
func TestAskingEnds(t *testing.T) {
	t.Parallel()
	url, _ := overHTTP(t)
	begun := time.Now()
	shown, code := onTerminal(t, []typed{{"(y/n)? ", "\x03", 0}}, "-protocol", "2025-11-25", "-url", url, "approve", `{"action":"x"}`)
	if took := time.Since(begun); code != 130 || took > generous/2 {
		t.Errorf("exit code %d after %v: %q", code, took, shown)
	}
}

// A bar where the total is known, and nothing of what a server says can harm the terminal.
func TestBar(t *testing.T) {
	t.Parallel()
	shown, code := onTerminal(t, nil, own("run_command", `{"command":"sh","args":["-c","for i in 1 2 3 4 5 6; do printf 'step\\033[2J\\a%s\\n' $i; sleep 1; done >&2; printf done"]}`)...)
	if code != 0 || !strings.Contains(shown, "step[2J") { // any: the newest takes the place of what is not shown yet
		t.Errorf("exit code %d: %q", code, shown)
	}
	if before, _, _ := strings.Cut(shown, "exit code: 0"); strings.Contains(before, "\a") || strings.Contains(before, "\x1b[2J") {
		t.Errorf("what the tool wrote reached the terminal: %q", before)
	}
	shown, code = onTerminal(t, nil, own("search", `{"root":"/usr/share","pattern":"qq+zz+","timeoutMs":10000}`)...)
	if code != 124 && code != 0 || !strings.Contains(shown, "[") || !strings.Contains(shown, " of ") {
		t.Errorf("exit code %d: %q", code, shown)
	}
}
