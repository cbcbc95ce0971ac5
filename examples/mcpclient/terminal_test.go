//go:build linux

package main

import (
	"io"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

// A typed text is typed when a text is shown.
type typed struct{ when, text string }

// onTerminal runs the client on a terminal of its own, and returns all that it showed.
func onTerminal(t *testing.T, keys []typed, args ...string) (shown string, code int) {
	t.Helper()
	cmd := harness.Command("client", args...)
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
	const prompt = "Approve (y/n)? "
	for _, tc := range []struct {
		name string
		keys []typed
		code int
		want string
	}{
		{"no", []typed{{prompt, "no\n"}}, 0, "accept map[approve:false]"},
		{"neither, then yes", []typed{{prompt, "maybe\n"}, {prompt, "Yes\n"}}, 0, "accept map[approve:true]"},
		{"Ctrl-D", []typed{{prompt, "\x04"}}, 0, "cancel map[]"},
		{"Ctrl-C", []typed{{prompt, "\x03"}}, 130, ""},
	} {
		for _, protocol := range []string{"2025-11-25", "2026-07-28"} {
			t.Run(tc.name+" "+protocol, func(t *testing.T) {
				t.Parallel()
				shown, code := onTerminal(t, tc.keys, overStdio("-protocol", protocol, "asks")...)
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
	url := overHTTP(t, func(string) {})
	if shown, code := onTerminal(t, []typed{{"(y/n)? ", "\x03"}}, "-protocol", "2025-11-25", "-url", url, "asks"); code != 130 {
		t.Errorf("exit code %d: %q", code, shown)
	}
}

// A bar where the total is known, and nothing of what a server says can harm the terminal.
func TestBar(t *testing.T) {
	t.Parallel()
	url := overHTTP(t, func(string) {})
	shown, code := onTerminal(t, []typed{{"1 of 7 step[2J", "\x03"}}, "-url", url, "silent")
	if code != 130 || !strings.Contains(shown, "[==") || strings.Contains(shown, "\a") || strings.Contains(shown, "\x1b[2J") {
		t.Errorf("exit code %d: %q", code, shown)
	}
}
