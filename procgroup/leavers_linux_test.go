package procgroup_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tooldeadline/tooldeadline/procgroup"
)

// isSleep waits until the process that a shell has started last is sleep, and no copy of the shell any more.
const isSleep = "while read name </proc/$!/comm && [ $name != sleep ]; do :; done; "

// leavers are scripts with a process that stays in its command, or leaves it in some way. Each prints the id of that process.
var leavers = map[string]string{
	"child":                       "sleep 1000 >/dev/null 2>&1 & echo $!; " + isSleep,
	"double fork":                 "(sleep 1000 >/dev/null 2>&1 & echo $!; " + isSleep + ")",
	"own session":                 "setsid sleep 1000 >/dev/null 2>&1 & echo $!; " + isSleep,
	"own session and double fork": "(setsid sleep 1000 >/dev/null 2>&1 & echo $!; " + isSleep + ")",
	"parent killed":               "setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!; " + isSleep + "kill -KILL $$'; sleep 0.2",
}

// SPEC 6.23, 6.7: a process that has left its parents, its group or its session is said to have been killed, or to run on,
// like any other.
func TestLeftoversThatHaveLeft(t *testing.T) {
	t.Parallel()
	everyContainment(t, func(t *testing.T, contained procgroup.Option) {
		t.Parallel()
		for name, script := range leavers {
			if contained == procgroup.Group && name != "child" {
				continue // it does not reach it
			}
			for _, kept := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/kept %v", name, kept), func(t *testing.T) {
					t.Parallel()
					opts, words := []procgroup.Option{contained}, "Killed because the command had ended"
					if kept {
						opts, words = append(opts, procgroup.Stop{Orphans: true}), "Running on after the command"
					}
					r, err := procgroup.Run(context.Background(), exec.Command("sh", "-c", script+"\nexit 0"), opts...)
					if err != nil {
						t.Fatal(err)
					}
					pid := atoi(strings.TrimSpace(r.Stdout.String()))
					want := fmt.Sprintf("%s: sleep (process %d).\n", words, pid)
					said := strings.Replace(r.Leftovers(), ", and perhaps others", "", 1) // where there was no time to look at all of them
					lives := alive(pid)
					killPid(pid)
					switch {
					case said == want && lives == kept:
					case !kept && len(r.Survivors)+len(r.Unidentified) > 0 && strings.Contains(r.Leftovers(), fmt.Sprintf("process %d)", pid)): // it dies late, which is said
					default:
						t.Errorf("%q, want %q; alive: %v", r.Leftovers(), want, lives)
					}
				})
			}
		}
	})
}

// SPEC 6.23: Leftovers says nothing of a process that others have killed while the command ran: this package did not do it,
// and the command knows.
func TestLeftoversKilledByOthers(t *testing.T) {
	t.Parallel()
	everyContainment(t, func(t *testing.T, contained procgroup.Option) {
		t.Parallel()
		for name, script := range map[string]string{
			"waited for": "wait $! 2>/dev/null; exit 0",
			"a zombie":   "exec cat", // which waits for no child
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var pid int
				cmd := exec.Command("sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!; "+isSleep+"echo ready; "+script)
				stdin, release, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				defer stdin.Close()
				defer release.Close()
				cmd.Stdin = stdin
				r, err := procgroup.Run(context.Background(), cmd, contained, procgroup.Capture{Each: procgroup.Lines(func(line string, _ bool) {
					switch line {
					case "ready":
						killPid(pid)
						until(t, "its end", func() bool { return !alive(pid) })
						release.Close()
					case "Killed": // as the shell says
					default:
						pid = atoi(line)
					}
				})})
				if err != nil || r.ExitCode != 0 || r.Leftovers() != "" && r.Unanswered == 0 || len(r.Killed.Processes) != 0 {
					t.Errorf("%v, %q, %v", err, r.Leftovers(), r.Killed)
				}
				mustBeDead(t, []int{pid})
			})
		}
	})
}
