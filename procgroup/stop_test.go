//go:build linux

package procgroup_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

func sleepCommand(seconds ...string) *exec.Cmd {
	if len(seconds) > 0 {
		return exec.Command("sleep", seconds[0])
	}
	return exec.Command("sleep", "120")
}

// SPEC 6.1: a command that ignores the request to end is killed at the end of the grace.
func TestIgnoresTerm(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sh", "-c", "trap '' TERM; while :; do sleep 1; done") // quicker than a race-enabled Go program
	r, err := within(t, 20*time.Second+shortGrace, cmd, total(20*time.Second, procgroup.WithOptions(timeout.WithName("TLC")))...)
	check(t, r, err, want{code: 124, reason: procgroup.TotalTimeout, message: "TLC process timed out after 20000ms.", escalated: true})
	if !errors.Is(err, timeout.ErrTotal) {
		t.Errorf("error %v is not a total timeout", err)
	}
	if r.State == nil || r.State.String() != "signal: killed" {
		t.Errorf("state %v", r.State)
	}
}

// SPEC 5.2: the handler's exit code does not hide the timeout, and is kept.
func TestHandlesTerm(t *testing.T) {
	t.Parallel()
	for _, code := range []int{0, 3} {
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			t.Parallel()
			r, err := within(t, 20*time.Second+shortGrace, command("handler", strconv.Itoa(code), "0s"), total(20*time.Second, procgroup.WithKillGrace(longLimit))...)
			check(t, r, err, want{code: 124, reason: procgroup.TotalTimeout, message: "tool process timed out after 20000ms."})
			if r.State.ExitCode() != code || r.Stdout.String() != "ready\nbye\n" {
				t.Errorf("state %v, output %q", r.State, r.Stdout)
			}
			var exit *exec.ExitError
			if errors.As(err, &exit) != (code != 0) {
				t.Errorf("the command's own error is %v", exit)
			}
		})
	}
}

// SPEC 6.1: the call does not wait longer for a command that ends within the grace.
func TestEndsWithinGrace(t *testing.T) {
	t.Parallel()
	r, err := within(t, 20*time.Second, command("handler", "0", "100ms"), total(20*time.Second, procgroup.WithKillGrace(longLimit))...)
	check(t, r, err, want{code: 124, reason: procgroup.TotalTimeout, message: "tool process timed out after 20000ms."})
}

// SPEC 6.6, 6.7: a daemon that ignores the request to end dies too.
func TestDaemonDies(t *testing.T) {
	t.Parallel()
	eachContainment(t, func(t *testing.T, opt procgroup.Option) {
		cmd, pids := family(t, "tree", "deaf")
		r, err := stopWhen(t, func() bool { return len(pids()) == 5 }, cmd, opt)
		check(t, r, err, want{code: 130, reason: procgroup.Aborted, message: aborted, escalated: true})
		mustBeDead(t, pids())
	})
}

// SPEC 6.6: after success, too, nothing is left alive.
func TestNothingLivesOnAfterSuccess(t *testing.T) {
	t.Parallel()
	eachContainment(t, func(t *testing.T, opt procgroup.Option) {
		cmd, pids := family(t, "tree", "exit", "0")
		r, err := within(t, time.Second, cmd, opt)
		check(t, r, err, want{})
		mustBeDead(t, pids())
	})
}

// SPEC 6.6: a command that fails on its own at once leaves nothing behind either, even
// where the shortcut for short-lived commands applies.
func TestShortLivedCommand(t *testing.T) {
	var unidentified []int
	mine := "PROCGROUP_TEST_SHORT=" + rand.Text()
	for range 20 {
		cmd := exec.Command("sh", "-c", "exec >/dev/null 2>&1; (setsid sleep 120 &) ; exit 3") // or a copy of the shell holds the output
		cmd.Env = append(cmd.Environ(), mine)
		r, err := within(t, time.Second, cmd, procgroup.WithContainment(procgroup.Descendants))
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
		r, err := stopWhen(t, func() bool { return len(pids()) == 6 }, cmd, opt, procgroup.WithAbortGrace(0))
		check(t, r, err, want{code: 130, reason: procgroup.Aborted, message: aborted})
		mustBeDead(t, pids())
	})
}

// WithOrphans leaves a daemon alone, and what it holds does not hold up the call.
func TestOrphansMayStay(t *testing.T) {
	t.Parallel()
	eachContainment(t, func(t *testing.T, opt procgroup.Option) {
		cmd, pids := family(t, "tree", "hold", "exit", "0")
		r, err := within(t, time.Second, cmd, opt, procgroup.WithOrphans())
		check(t, r, err, want{held: true})
		for begun := time.Now(); len(pids()) < 5 && time.Since(begun) < slack; time.Sleep(2 * time.Millisecond) {
		} // what may stay may still be on its way
		if len(pids()) != 5 {
			t.Fatalf("the tree had %d processes, want 5", len(pids()))
		}
		living := 0
		for _, pid := range pids() {
			if alive(pid) {
				living++
				killPid(pid)
			}
		}
		if living != 3 {
			t.Errorf("%d processes live on, want 3", living)
		}
	})
}

// SPEC 6.1: stopped processes are continued so that they can act on the request to end,
// and killed if they do not.
func TestStopped(t *testing.T) {
	t.Parallel()
	for _, c := range []procgroup.Containment{"", procgroup.Group, procgroup.Helper} {
		for _, deaf := range []string{"", "deaf"} {
			t.Run(fmt.Sprint(c, deaf), func(t *testing.T) {
				t.Parallel()
				cmd, pids := family(t, "stopped", deaf)
				ready := func() bool {
					for _, pid := range pids() {
						if s, _ := statOf(pid); s.state != "T" {
							return false
						}
					}
					return len(pids()) == 2
				}
				grace := shortGrace
				if deaf == "" {
					grace = longLimit // to act on the request, on a busy machine
				}
				r, err := stopWhen(t, ready, cmd, procgroup.WithContainment(c), procgroup.WithAbortGrace(grace))
				check(t, r, err, want{code: 130, reason: procgroup.Aborted, message: aborted, escalated: deaf != ""})
				mustBeDead(t, pids())
			})
		}
	}
}

// SPEC 6.6: a bomb that forks into sessions of its own is gone at once.
//
// A control group is killed at one stroke. The other ways race the bomb, which on a
// starved machine can get so far ahead that the time is over first. Then the result says that
// something is left, and the bomb, which ends by itself, gets another go.
func TestForkBomb(t *testing.T) {
	eachContainment(t, func(t *testing.T, opt procgroup.Option) {
		for range 5 {
			cmd, pids := family(t, "hop")
			var begun time.Time // its first process has
			grown := func() bool {
				n := len(pids())
				if n > 0 && begun.IsZero() {
					begun = time.Now()
				}
				return n >= 12 || n > 0 && time.Since(begun) > time.Second
			}
			r, err := stopWhen(t, grown, cmd, opt)
			if r == nil || r.ExitCode != 130 {
				t.Fatalf("%+v, %v", r, err)
			}
			bomb := len(pids()) >= 4 // else it has hardly begun
			left := slices.DeleteFunc(pids(), func(pid int) bool { return !alive(pid) })
			if len(r.Survivors) == 0 && len(left) == 0 {
				if bomb {
					return
				}
				continue
			}
			// The process that was forked last may be the unidentified one.
			if r.Contained == procgroup.Cgroup || len(r.Survivors)+len(r.Unidentified) == 0 {
				mustBeDead(t, left)
				t.Fatalf("%v are alive: %+v", left, r)
			}
			t.Logf("survivors %v, unidentified %v, alive %v, after %v", r.Survivors, r.Unidentified, left, r.Elapsed)
			for deadline := time.Now().Add(slack); slices.ContainsFunc(pids(), alive); {
				if time.Now().After(deadline) {
					mustBeDead(t, pids())
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		t.Error("never was there a bomb whose tree was empty in time")
	})
}

// SPEC 3.4: a command that ends at the instant of the limit has one outcome, and all reports
// about it agree.
func TestEndsAtTheLimit(t *testing.T) {
	t.Parallel()
	const n, atOnce = 160, 8
	var mu sync.Mutex
	reasons := make(map[procgroup.Reason]int)
	race(n, atOnce, func(i int) {
		limit := time.Duration(20+i%16) * time.Millisecond
		r, err := procgroup.Run(context.Background(), exec.Command("sleep", "0.025"), total(limit)...)
		if consistent(t, r, err) {
			mu.Lock()
			reasons[r.Reason]++
			mu.Unlock()
		}
	})
	t.Log(reasons)
}

// SPEC 6.9: of a timeout and an abort at the same time the first wins.
func TestTimeoutAndAbortTogether(t *testing.T) {
	t.Parallel()
	const n, atOnce = 160, 8
	var mu sync.Mutex
	reasons := make(map[procgroup.Reason]int)
	race(n, atOnce, func(i int) {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(20*time.Millisecond, cancel)
		limits := timeout.Config{Total: 20*time.Millisecond + time.Duration(i%16-8)*100*time.Microsecond}
		r, err := procgroup.Run(ctx, sleepCommand(), procgroup.WithLimits(limits))
		if !consistent(t, r, err) {
			return
		}
		if r.Reason != procgroup.TotalTimeout && r.Reason != procgroup.Aborted {
			t.Errorf("reason %v", r.Reason)
		}
		mu.Lock()
		reasons[r.Reason]++
		mu.Unlock()
	})
	t.Log(reasons)
}

func race(n, atOnce int, f func(i int)) {
	var wg sync.WaitGroup
	for g := range atOnce {
		wg.Go(func() {
			for i := g; i < n; i += atOnce {
				f(i)
			}
		})
	}
	wg.Wait()
}

// consistent fails the test unless reason, error, code and message say the same. On a busy
// machine a command may have been stopped before it was started; then there is no result.
func consistent(t *testing.T, r *procgroup.Result, err error) (started bool) {
	t.Helper()
	if r == nil {
		if e := (*timeout.Error)(nil); !errors.As(err, &e) {
			t.Errorf("no result: %v", err)
		}
		return false
	}
	ok := false
	switch r.Reason {
	case procgroup.Exited:
		ok = err == nil && r.ExitCode == 0 && r.Message == "" && r.State.Success()
	case procgroup.TotalTimeout:
		ok = errors.Is(err, timeout.ErrTotal) && !errors.Is(err, timeout.ErrAborted) && r.ExitCode == 124 && r.Message != ""
	case procgroup.Aborted:
		ok = errors.Is(err, timeout.ErrAborted) && !errors.Is(err, timeout.ErrTotal) && r.ExitCode == 130 && r.Message != ""
	}
	if !ok || len(undying(r.Survivors)) > 0 || timeout.ExitCode(err) != r.ExitCode {
		t.Errorf("inconsistent: %v, %+v", err, r)
	}
	return true
}
