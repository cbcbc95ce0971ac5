//go:build unix

package main

import "testing"

// TestUnlikeGNU shows where the program differs from GNU timeout on purpose.
func TestUnlikeGNU(t *testing.T) {
	bin := ours(t)
	for _, c := range []struct {
		name, script string
		want         result
	}{
		{"ignored signals stay ignored", "trap '' INT; exec timeout 60 sh -c 'kill -INT $$; echo alive'",
			result{"exit status 0", "alive\n", ""}},
		{"and are not passed on", "trap '' HUP; timeout -v 60 sh -c 'kill -HUP $PPID; sleep .2; echo alive'",
			result{"exit status 0", "alive\n", ""}},
		{"USR1 is passed on", "exec timeout -v 60 sh -c 'trap \"exit 8\" USR1; kill -USR1 $PPID; sleep 1 & wait'",
			result{"exit status 8", "", "timeout: sending signal USR1 to command 'sh'\n"}},
		{"SIGPIPE does not end it", "{ timeout -v .5 sh -c 'trap \"exit 5\" TERM; sleep 30 & wait' 2>&1; echo $? >code; } | :; while ! [ -s code ]; do sleep .1; done; cat code",
			result{"exit status 0", "125\n", ""}},
		{"short preserve-status", "exec timeout -p .1 sleep 30", result{"exit status 143", "", ""}},
		{"short foreground", "exec timeout -f .1 sleep 30", result{"exit status 124", "", ""}},
		{"short option with =", "exec timeout -k=1 60 true", result{"exit status 0", "", ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := runScript(t, bin, c.script); got != c.want {
				t.Errorf("%s\ngot  %q\nwant %q", c.script, got, c.want)
			}
		})
	}
}
