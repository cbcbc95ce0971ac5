//go:build unix

package main

import (
	"strings"
	"testing"
)

// SPEC 18.1 to 18.3: heartbeats from a script renew the idle limit, the command learns its limits, and what is left of the
// socket is nothing.
func TestNotify(t *testing.T) {
	t.Parallel()
	bin := ours(t)
	const usage = "Try 'deadline --help' for more information.\n"
	for _, c := range []struct {
		name, script string
		want         result
	}{
		{"heartbeats", "exec deadline --notify --idle 4 60 sh -c 'n=0; while [ $((n+=1)) -le 15 ]; do sleep .3; deadline --beat $n; done; exit 3'",
			result{"exit status 3", "", ""}},
		{"heartbeats and no output", "exec deadline -v --notify --idle .3 60 sh -c 'deadline --beat; sleep 60'",
			result{"exit status 124", "", "deadline: no output or heartbeat from command 'sh' for 300ms\ndeadline: sending signal TERM to command 'sh'\n"}},
		{"heartbeats of a command of a command", "exec deadline --notify --idle 4 60 deadline --notify 60 sh -c 'n=0; while [ $((n+=1)) -le 15 ]; do sleep .3; deadline --beat $n; done; exit 3'",
			result{"exit status 3", "", ""}},
		{"with --alive", "exec deadline -v --notify --alive=output --idle .3 60 sleep 60",
			result{"exit status 124", "", "deadline: no output or heartbeat from command 'sleep' for 300ms\ndeadline: sending signal TERM to command 'sleep'\n"}},
		{"limits", `WATCHDOG_PID=1 deadline --notify --idle 30 60 sh -c 'echo $WATCHDOG_USEC $WATCHDOG_PID; [ -S $NOTIFY_SOCKET ]; echo $?; case $TOOL_DEADLINE in 20??-*T*.???Z) echo yes;; esac; dirname $NOTIFY_SOCKET >at'; ls $(cat at) 2>/dev/null || echo gone`,
			result{"exit status 0", "30000000\n0\nyes\ngone\n", ""}},
		{"no limits", `WATCHDOG_USEC=1 exec deadline --notify 0 sh -c 'echo $WATCHDOG_USEC$TOOL_DEADLINE.'`, result{"exit status 0", ".\n", ""}},
		{"gone after SIGKILL", `exec 2>/dev/null; deadline --notify -s KILL .3 sh -c 'dirname $NOTIFY_SOCKET >at; exec sleep 60'; ls $(cat at) 2>/dev/null || echo gone`,
			result{"exit status 0", "gone\n", ""}},
		{"an end that was inherited", "TOOL_DEADLINE=2001-01-01T00:00:00Z exec deadline -v 60 sleep 60",
			result{"exit status 124", "", "deadline: sending signal TERM to command 'sleep'\n"}},
		{"and the time until the kill after it", "TOOL_DEADLINE=2001-01-01T00:00:00Z exec deadline -k 60 0 sh -c 'trap \"exit 3\" TERM; while :; do sleep .1; done' 2>/dev/null",
			result{"exit status 124", "", ""}},
		{"in small letters", "TOOL_DEADLINE=2001-01-01t00:00:00z exec deadline 60 sleep 60", result{"exit status 124", "", ""}},
		{"one that is none", "TOOL_DEADLINE=soon exec deadline 60 true",
			result{"exit status 0", "", "deadline: ignored: timeout: TOOL_DEADLINE=\"soon\": want an instant as in RFC 3339, such as 2006-01-02T15:04:05.000Z\n"}},
		{"a heartbeat to nobody", "exec deadline --beat", result{"exit status 0", "", ""}},
		{"and what is said of it", "exec deadline -v --beat half", result{"exit status 0", "", "deadline: nobody listens: NOTIFY_SOCKET is not set\n"}},
		{"two details", "exec deadline --beat one two", result{"exit status 125", "", "deadline: extra operand 'two'\n" + usage}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := runScript(t, bin, c.script)
			got.Stderr = treeLines.ReplaceAllString(got.Stderr, "")
			if got != c.want {
				t.Errorf("%s\ngot  %q\nwant %q", c.script, got, c.want)
			}
		})
	}
	t.Run("a supervisor that is gone", func(t *testing.T) {
		t.Parallel()
		got := runScript(t, bin, "NOTIFY_SOCKET=/no/such/socket exec deadline --beat")
		if got.Exit != "exit status 125" || !strings.HasPrefix(got.Stderr, "deadline: cannot send a heartbeat: ") {
			t.Errorf("%+v", got)
		}
	})
}
