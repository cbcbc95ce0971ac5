//go:build unix

package main

import "testing"

// TestUnlikeGNU shows where the program differs from GNU timeout on purpose.
func TestUnlikeGNU(t *testing.T) {
	t.Parallel()
	bin := ours(t)
	for _, c := range []struct {
		name, script string
		want         result
	}{
		{"a message that is lost leaves the status", "exec timeout -pv .1 sleep 30 2>/dev/full", result{"exit status 143", "", ""}},
		{"a pipe that a message breaks", "{ timeout -v .1 sh -c 'exec 2>/dev/null; trap \"echo pipe >&3\" PIPE; trap \"trap : TERM; echo term >&3\" TERM; until [ -e sent ]; do sleep .01; done; :' 2>&1 3>said; echo $? >code; } | :; while ! [ -s code ]; do sleep .1; done; cat said code",
			result{"exit status 0", "term\n124\n", ""}},
		{"a pipe that the output breaks", "{ timeout --idle 30 60 sh -c 'trap \"echo pipe >&3\" PIPE; sleep .3; echo x; for i in 1 2 3 4 5; do sleep .1; done; exit 3' 3>said; echo $? >code; } | :; while ! [ -s code ]; do sleep .1; done; cat said code",
			result{"exit status 0", "3\n", ""}},
		{"a signal of the C library's", "exec timeout -v -s 32 .1 sleep 10",
			result{"exit status 124", "", "timeout: sending signal 32 to command 'sleep'\n"}},
		{"PROF is not passed on", "exec timeout -v 60 sh -c 'kill -PROF $PPID; sleep .2; exit 4'", result{"exit status 4", "", ""}},
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
