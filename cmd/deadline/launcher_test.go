//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

// SPEC 17.1: a launcher that is killed takes the program and its command with it, though nothing passes the
// signal on and stdin stays open.
func TestEndsWithLauncher(t *testing.T) {
	t.Parallel()
	bin := ours(t)
	for _, tc := range []struct{ name, script string }{
		{"while the command runs", "TOOLDEADLINE_LAUNCHER=$$ deadline 600 sh -c 'echo up; sleep 600; :'; :"},
		{"a command that ignores TERM", "TOOLDEADLINE_LAUNCHER=$$ deadline -k 0.1 600 sh -c 'trap \"\" TERM; echo up; sleep 600; sleep 600'; :"},
		{"with an idle limit", "TOOLDEADLINE_LAUNCHER=$$ deadline --idle 600 600 sh -c 'echo up; sleep 600; :'; :"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cmd, mark := prepare(t, bin, tc.script)
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer stdin.Close()
			harness.Start(t, cmd, "up\n")
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
			harness.None(t, mark)
			_ = cmd.Wait()
		})
	}
}

// A command does not inherit the name of a launcher that is not its own.
func TestLauncherNotInherited(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"$$", "0", "-1", "nonsense"} {
		got := runScript(t, ours(t), "TOOLDEADLINE_LAUNCHER="+value+"; export TOOLDEADLINE_LAUNCHER; deadline 60 sh -c 'echo [$TOOLDEADLINE_LAUNCHER]'")
		if got.Stdout != "[]\n" || !strings.HasSuffix(got.Exit, "status 0") {
			t.Errorf("%s: %+v", value, got)
		}
	}
}
