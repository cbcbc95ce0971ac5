//go:build linux

package procgroup_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// This file holds traps: each test is of a mistake that was made.

// A limit, and the grace of its execution, that are over before the command has been
// started: the start ends first, and then the command does.
func TestLimitDuringTheStart(t *testing.T) {
	t.Parallel()
	for i := range 200 {
		limits := timeout.Config{Total: time.Duration(i%20+1) * 100 * time.Microsecond, Grace: 1}
		r, err := procgroup.Run(context.Background(), sleepCommand(), procgroup.WithLimits(limits))
		var stop *timeout.Error
		if !errors.As(err, &stop) || stop.Kind != timeout.KindTotal {
			t.Fatalf("%v", err)
		}
		if r == nil {
			continue // the limit was before the start; that nothing lives, the suite checks
		}
		if r.ExitCode != 124 || len(undying(r.Survivors)) > 0 {
			t.Fatalf("%+v", r)
		}
	}
}

// A command of exec.CommandContext with the execution's own context: its timeout is one,
// although os/exec learns of the cancellation before the contexts below do.
func TestCommandContextOfTheExecution(t *testing.T) {
	t.Parallel()
	for range 30 {
		var r *procgroup.Result
		err := timeout.Run(context.Background(), func(ctx context.Context) error {
			for range 1000 {
				_, cancel := context.WithCancel(ctx)
				defer cancel()
			}
			var err error
			r, err = procgroup.Run(ctx, exec.CommandContext(ctx, "sleep", "60"))
			return err
		}, timeout.Config{Total: 20 * time.Millisecond})
		if !errors.Is(err, timeout.ErrTotal) || (r != nil && (r.Reason != procgroup.TotalTimeout || r.ExitCode != 124)) {
			t.Fatalf("%v, %+v", err, r)
		}
	}
}

// A variable whose value looks like the one that marks descendants does not hide it.
func TestLookalikeOfTheCookie(t *testing.T) {
	t.Parallel()
	for _, env := range []string{"A=TOOLDEADLINE_TREE=x", "TOOLDEADLINE_TREE=", "TOOLDEADLINE_TREE=x", "XTOOLDEADLINE_TREE=x"} {
		t.Run(env, func(t *testing.T) {
			cmd, pids := family(t, "tree", "deaf")
			cmd.Env = append([]string{env}, cmd.Env...)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			p, err := procgroup.Start(ctx, cmd, procgroup.WithContainment(procgroup.Descendants))
			if err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(longLimit); len(pids()) < 4 && time.Now().Before(deadline); {
				time.Sleep(5 * time.Millisecond)
			}
			cancel()
			if r, _ := p.Wait(); len(undying(r.Survivors)) > 0 || len(pids()) < 4 {
				t.Errorf("%d processes, survivors %v", len(pids()), r.Survivors)
			}
			mustBeDead(t, pids())
		})
	}
}

// A kill grace of for ever is not one of nothing.
func TestAttachWithAnEndlessGrace(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", "trap 'sleep 0.3; echo done; exit 3' TERM; echo up; while :; do sleep 0.05; done")
	procgroup.Attach(cmd, procgroup.WithKillGrace(math.MaxInt64))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var first string
	if _, err := fmt.Fscanln(out, &first); err != nil {
		t.Fatal(err)
	}
	cancel()
	var rest strings.Builder
	for {
		var word string
		if _, err := fmt.Fscan(out, &word); err != nil {
			break
		}
		rest.WriteString(word)
	}
	_ = cmd.Wait()
	if first != "up" || rest.String() != "done" || cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("%q %q %v", first, rest.String(), cmd.ProcessState)
	}
}
