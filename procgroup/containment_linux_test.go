//go:build linux

package procgroup_test

import (
	"context"
	"crypto/rand"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup"
)

func sleepCommand(seconds ...string) *exec.Cmd {
	if len(seconds) > 0 {
		return exec.Command("sleep", seconds[0])
	}
	return exec.Command("sleep", "120")
}

// SPEC 6.5, 6.6, 6.7: whether a command is stopped or ends by itself, all of its tree dies, a deaf daemon that holds the streams,
// too; Orphans leaves it alone.
func TestTreeDies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, args string
		opts       []procgroup.Option
		aborted    bool
		live       int
		want       want
	}{
		{"an abort", "deaf", nil, true, 0, want{code: 130, reason: procgroup.Aborted, message: aborted, escalated: true}},
		{"success", "exit 0", nil, false, 0, want{}},
		{"success, and a daemon that holds the streams", "hold exit 0", nil, false, 0, want{held: true}},
		{"orphans", "hold exit 0", []procgroup.Option{procgroup.Stop{Orphans: true}}, false, 3, want{held: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			eachContainment(t, func(t *testing.T, opt procgroup.Option) {
				cmd, pids := family(t, "tree", strings.Fields(tt.args)...)
				all := func() bool { return len(pids()) == 5 }
				opts := append([]procgroup.Option{opt}, tt.opts...)
				var r *procgroup.Result
				var err error
				if tt.aborted {
					r, err = stopWhen(t, all, cmd, opts...)
				} else {
					r, err = procgroup.Run(context.Background(), cmd, opts...)
				}
				check(t, r, err, tt.want)
				if !strings.Contains(r.Stdout.String(), "ready\n") {
					t.Errorf("output %q", r.Stdout)
				}
				if tt.live == 0 {
					mustBeDead(t, pids())
					return
				}
				harness.Eventually(t, "the tree to be complete", all) // what may stay may still be on its way
				live := slices.DeleteFunc(pids(), func(pid int) bool { return !alive(pid) })
				for _, pid := range live {
					killPid(pid)
				}
				if len(live) != tt.live {
					t.Errorf("%d processes live on, want %d", len(live), tt.live)
				}
			})
		})
	}
}

// SPEC 6.6: a command that fails on its own at once leaves nothing behind either, even
// where the shortcut for short-lived commands applies.
func TestShortLivedCommand(t *testing.T) {
	var unidentified []int
	mine := "PROCGROUP_TEST_SHORT=" + rand.Text()
	for range 5 {
		cmd := exec.Command("sh", "-c", "exec >/dev/null 2>&1; (setsid sleep 120 &) ; exit 3") // or a copy of the shell holds the output
		cmd.Env = append(cmd.Environ(), mine)
		r, err := procgroup.Run(t.Context(), cmd, procgroup.Descendants)
		check(t, r, err, want{code: 3})
		unidentified = append(unidentified, r.Unidentified...)
	}
	for _, pid := range marked(mine) {
		killPid(pid)
		if !slices.Contains(unidentified, pid) { // as what is in its exec all the time, on a machine that stands still
			t.Errorf("process %d is alive", pid)
		}
	}
}

// A command that is a supervisor itself: the processes of its commands die too, and so does
// what it has made for them.
func TestSupervisorInside(t *testing.T) {
	t.Parallel()
	eachContainment(t, func(t *testing.T, opt procgroup.Option) {
		inside := t.Name()[strings.LastIndexByte(t.Name(), '/')+1:]
		cmd, pids := family(t, "run", inside, "tree", "deaf")
		r, err := stopWhen(t, func() bool { return len(pids()) == 6 }, cmd, opt, procgroup.Stop{AbortDelay: 0})
		check(t, r, err, want{code: 130, reason: procgroup.Aborted, message: aborted})
		mustBeDead(t, pids())
	})
}

// SPEC 6.6: a bomb that forks into sessions of its own is gone at once. A control group is killed at one stroke. The other ways
// race the bomb, which may win on a starved machine: then the result says that something is left.
func TestForkBomb(t *testing.T) {
	t.Parallel()
	eachContainment(t, func(t *testing.T, opt procgroup.Option) {
		cmd, pids := family(t, "hop")
		r, err := stopWhen(t, func() bool { return len(pids()) >= 4 }, cmd, opt)
		if r == nil || r.ExitCode != 130 {
			t.Fatalf("%+v, %v", r, err)
		}
		// The process that was forked last may be the unidentified one.
		if r.Contained == procgroup.Cgroup || len(r.Survivors)+len(r.Unidentified) == 0 {
			mustBeDead(t, pids())
			return
		}
		t.Logf("survivors %v, unidentified %v, after %v", r.Survivors, r.Unidentified, r.Elapsed)
		harness.Eventually(t, "the bomb to end by itself", func() bool { return !slices.ContainsFunc(pids(), alive) })
	})
}
