//go:build linux

package procgroup_test

import (
	"context"
	"errors"
	"math"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// The results of stopped commands, and the error of the execution (SPEC 6.8, 6.29).
const (
	idleMessage = "sleep process timed out after 3000ms without output."
	idleError   = "No progress for 3s (idle timeout). sleep wrote nothing."
)

// SPEC 6.2: output on either stream is a heartbeat, newline or not; work without
// output is not.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	idle := timeout.Config{Idle: 12 * time.Second, Total: longLimit}
	for _, args := range [][]string{{"stdout", "\r50%"}, {"stderr", "."}, {"stdout", "line\n"}} {
		t.Run(args[0]+args[1], func(t *testing.T) {
			t.Parallel()
			r, err := within(t, longLimit, command("print", append(args, "30", "500ms")...), procgroup.WithLimits(idle))
			check(t, r, err, want{})
			if n := int64(30 * len(args[1])); r.Combined.Total != n {
				t.Errorf("%d bytes, want %d", r.Combined.Total, n)
			}
		})
	}
	t.Run("silent", func(t *testing.T) {
		t.Parallel()
		r, err := within(t, shortLimit, command("busy"), procgroup.WithOptions(timeout.WithName("sleep")), procgroup.WithLimits(timeout.Config{Idle: shortLimit}))
		check(t, r, err, want{code: 124, reason: procgroup.IdleTimeout, message: idleMessage})
		if !errors.Is(err, timeout.ErrIdle) || err.Error() != idleError {
			t.Error(err)
		}
	})
}

// SPEC 3.11: with a context that is done nothing is spawned.
func TestCancelledFromTheStart(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, opts := range [][]procgroup.Option{nil, {procgroup.WithLimits(timeout.Default())}} {
		cmd, pids := family(t, "exit", "0")
		r, err := procgroup.Run(ctx, cmd, opts...)
		if r != nil || timeout.ExitCode(err) != 130 || !errors.Is(err, context.Canceled) || cmd.Process != nil {
			t.Errorf("%v, %v", r, err)
		}
		if len(pids()) > 0 {
			t.Error("something was spawned")
		}
	}
	_ = timeout.Run(ctx, func(context.Context) error { return nil })
}

// Without limits and without an enclosing execution, only the context counts; a deadline is a total limit
// (SPEC 3.12).
func TestPlainContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), shortLimit)
	defer cancel()
	r, err := procgroup.Run(ctx, sleepCommand())
	if r.Reason != procgroup.TotalTimeout || r.ExitCode != 124 || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%+v, %v", r, err)
	}
	cause := errors.New("enough")
	ctx2, cancel2 := context.WithCancelCause(context.Background())
	time.AfterFunc(shortLimit, func() { cancel2(cause) })
	r, err = procgroup.Run(ctx2, sleepCommand())
	if r.Reason != procgroup.Aborted || r.ExitCode != 130 || !errors.Is(err, cause) || !errors.Is(err, timeout.ErrAborted) {
		t.Errorf("%+v, %v", r, err)
	}
}

// Inside an execution its limits are the command's, with the same messages, and output is
// its heartbeat.
func TestInsideAnExecution(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		limits timeout.Config
		cmd    *exec.Cmd
		want   want
	}{
		{"idle", timeout.Config{Idle: shortLimit}, sleepCommand(), want{code: 124, reason: procgroup.IdleTimeout, message: idleMessage}},
		{"total", timeout.Config{Total: shortLimit}, sleepCommand(), want{code: 124, reason: procgroup.TotalTimeout, message: "sleep process timed out after 3000ms."}},
		{"beats", timeout.Config{Idle: 12 * time.Second}, command("print", "stdout", ".", "30", "500ms"), want{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var r *procgroup.Result
			var inner error
			outer := timeout.Run(context.Background(), func(ctx context.Context) error {
				r, inner = procgroup.Run(ctx, tt.cmd)
				return inner
			}, tt.limits)
			check(t, r, inner, tt.want)
			if timeout.ExitCode(outer) != tt.want.code {
				t.Errorf("the execution around says %v", outer)
			}
			// The texts may differ: a command is not asked for heartbeat().
			var in, out *timeout.Error
			if tt.want.code != 0 && (!errors.As(inner, &in) || !errors.As(outer, &out) || in.Abandoned || in.Kind != out.Kind || in.Limit != out.Limit) {
				t.Errorf("%v inside, %v outside", inner, outer)
			}
		})
	}
}

// With limits of its own inside an execution: output beats for both (SPEC 4.2), and a
// limit of the outer one is a timeout of the command too.
func TestNested(t *testing.T) {
	t.Parallel()
	t.Run("outer idle", func(t *testing.T) {
		t.Parallel()
		var r *procgroup.Result
		var inner error
		_ = timeout.Run(context.Background(), func(ctx context.Context) error {
			r, inner = procgroup.Run(ctx, sleepCommand(), procgroup.WithLimits(timeout.Config{Total: longLimit}))
			return nil
		}, timeout.Config{Idle: shortLimit})
		check(t, r, inner, want{code: 124, reason: procgroup.IdleTimeout, message: idleMessage})
	})
	t.Run("inner total", func(t *testing.T) {
		t.Parallel()
		outer := timeout.Run(context.Background(), func(ctx context.Context) error {
			r, err := procgroup.Run(ctx, sleepCommand(), total(shortLimit, procgroup.WithKillGrace(longLimit))...)
			check(t, r, err, want{code: 124, reason: procgroup.TotalTimeout, message: "tool process timed out after 3000ms."})
			return nil
		}, timeout.Config{Total: longLimit})
		if outer != nil {
			t.Error(outer)
		}
	})
	t.Run("outer total", func(t *testing.T) { // said as it was configured, and not as what was left
		t.Parallel()
		var r *procgroup.Result
		var inner error
		_ = timeout.Run(context.Background(), func(ctx context.Context) error {
			time.Sleep(50 * time.Millisecond)
			r, inner = procgroup.Run(ctx, sleepCommand(), procgroup.WithOptions(timeout.WithName("tool")), procgroup.WithLimits(timeout.Config{Idle: longLimit}))
			return nil
		}, timeout.Config{Total: shortLimit})
		check(t, r, inner, want{code: 124, reason: procgroup.TotalTimeout, message: "tool process timed out after 3000ms."})
		if inner == nil || inner.Error() != "Tool exceeded wall-clock limit of 3s." {
			t.Error(inner)
		}
	})
	t.Run("beats climb", func(t *testing.T) {
		t.Parallel()
		plain() // building it takes longer than the limit
		err := timeout.Run(context.Background(), func(ctx context.Context) error {
			_, err := procgroup.Run(ctx, command("print", "stderr", ".", "30", "500ms"), procgroup.WithLimits(timeout.Config{Total: longLimit}))
			return err
		}, timeout.Config{Idle: 12 * time.Second})
		if err != nil {
			t.Error(err)
		}
	})
}

// A deadline of a context inside an execution is a total limit too.
func TestDeadlineInsideAnExecution(t *testing.T) {
	t.Parallel()
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		var r *procgroup.Result
		var err error
		for limit := shortLimit; r == nil && limit < longLimit; limit *= 4 { // on a busy machine it passes before the start
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			r, err = procgroup.Run(ctx, sleepCommand())
		}
		// The rest of the deadline, in whole milliseconds (SPEC 3.3).
		said := regexp.MustCompile(`^sleep process timed out after \d+ms\.$`)
		if r == nil || r.Reason != procgroup.TotalTimeout || r.ExitCode != 124 || !said.MatchString(r.Message) {
			t.Errorf("%+v, %v", r, err)
		}
		return nil
	}, timeout.Config{Total: longLimit})
	if err != nil {
		t.Error(err)
	}
}

// The context of exec.CommandContext aborts; if it is the caller's, it is not an abort
// before it is what the execution says.
func TestCommandContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(shortLimit, cancel)
	r, err := procgroup.Run(context.Background(), exec.CommandContext(ctx, "sleep", "120"), procgroup.WithOptions(timeout.WithName("tool")))
	check(t, r, err, want{code: 130, reason: procgroup.Aborted, message: aborted})
	r, err = procgroup.Run(context.Background(), exec.CommandContext(ctx, "sleep", "120"))
	if r != nil || timeout.ExitCode(err) != 130 {
		t.Errorf("%v, %v", r, err)
	}
	ctx, cancel = context.WithTimeout(context.Background(), shortLimit)
	defer cancel()
	r, err = procgroup.Run(ctx, exec.CommandContext(ctx, "sleep", "120"))
	if r == nil || r.Reason != procgroup.TotalTimeout {
		t.Errorf("%v, %v", r, err)
	}
}

// SPEC 5.1: the codes of commands that end by themselves.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		script string
		code   int
	}{{"exit 0", 0}, {"exit 7", 7}, {"kill -9 $$", 137}, {"kill -15 $$", 143}, {"exit 124", 124}} {
		eachContainment(t, func(t *testing.T, opt procgroup.Option) {
			r, err := within(t, time.Second, exec.Command("sh", "-c", tt.script), opt)
			check(t, r, err, want{code: tt.code})
			if exit := (*exec.ExitError)(nil); errors.As(err, &exit) != (tt.code != 0) {
				t.Errorf("%s: %v", tt.script, err)
			}
		})
	}
}

// Wait may be called by many, and cmd shows what os/exec would.
func TestWaitOften(t *testing.T) {
	cmd := exec.Command("sh", "-c", "exit 5")
	p, err := procgroup.Start(context.Background(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	if cmd.Process == nil || cmd.Process.Pid != p.Pid {
		t.Errorf("process %v", cmd.Process)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			r, err := p.Wait()
			check(t, r, err, want{code: 5})
		})
	}
	wg.Wait()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 5 {
		t.Errorf("state %v", cmd.ProcessState)
	}
	if _, err := procgroup.Start(context.Background(), cmd); err == nil {
		t.Error("started twice")
	}
}

// The caller's attributes are kept, and not changed.
func TestAttributes(t *testing.T) {
	eachContainment(t, func(t *testing.T, opt procgroup.Option) {
		attr := &syscall.SysProcAttr{Setsid: true}
		cmd := exec.Command("sh", "-c", `read -r _ _ _ _ group session _ </proc/$$/stat; echo $$ $group $session`)
		cmd.SysProcAttr = attr
		r, err := within(t, time.Second, cmd, opt)
		check(t, r, err, want{})
		f := strings.Fields(r.Stdout.String())
		if len(f) != 3 || f[0] != f[1] || f[0] != f[2] {
			t.Errorf("pid, group and session are %v", f)
		}
		if attr.UseCgroupFD || attr.Setpgid || cmd.SysProcAttr != attr || len(cmd.Env) > 0 || cmd.Stdout != nil {
			t.Error("the command was changed")
		}
		cmd = exec.Command("true")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: 1}
		if _, err := procgroup.Run(context.Background(), cmd, opt); err == nil {
			t.Error("a foreign group was accepted")
		}
	})
}

// A containment that is missing is an error that says so.
func TestUnavailableContainment(t *testing.T) {
	_, err := procgroup.Run(context.Background(), exec.Command("true"), procgroup.WithContainment(procgroup.Job))
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}

// SPEC 2.13: a grace of 0 is the default, and a negative one is none.
func TestZeroAndNegativeGrace(t *testing.T) {
	t.Parallel()
	const killed = "signal: killed"
	for _, tt := range []struct {
		name  string
		opt   func(time.Duration) procgroup.Option
		abort bool
		grace time.Duration
		state string
	}{
		{"limit, 0", procgroup.WithKillGrace, false, 0, "exit status 3"},
		{"limit, negative", procgroup.WithKillGrace, false, -1, killed},
		{"abort, 0", procgroup.WithAbortGrace, true, 0, killed},
		{"abort, negative", procgroup.WithAbortGrace, true, math.MinInt64, killed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			limits := timeout.Config{Total: 15 * time.Second} // for the trap to be set by then
			if tt.abort {
				limits = timeout.Config{}
				defer time.AfterFunc(shortLimit, cancel).Stop()
			}
			r, err := procgroup.Run(ctx, exec.Command("sh", "-c", "trap 'exit 3' TERM; while :; do sleep 0.1; done"),
				procgroup.WithLimits(limits), tt.opt(tt.grace))
			if r == nil || r.State == nil || r.State.String() != tt.state {
				t.Errorf("%v, %+v", err, r)
			}
		})
	}
}

// A containment that does not exist is refused, and the error names those that do.
func TestUnknownContainment(t *testing.T) {
	for _, c := range []procgroup.Containment{"cgroups", "auto", "Group"} {
		r, err := procgroup.Run(t.Context(), exec.Command("true"), procgroup.WithContainment(c))
		var bad *timeout.ConfigError
		if r != nil || !errors.As(err, &bad) || bad.Key != "WithContainment" || bad.Value != string(c) {
			t.Errorf("%q: %v", c, err)
		}
	}
}

// A grace in the limits bounds the kill grace.
func TestGraceOfTheLimits(t *testing.T) {
	t.Parallel()
	const limit = 12 * time.Second // for the trap to be set by then
	var r *procgroup.Result
	var err error
	for range 3 { // a busy machine may stall in one of them
		cmd := exec.Command("sh", "-c", "trap '' TERM; while :; do sleep 1; done")
		r, err = within(t, limit+1200*time.Millisecond, cmd, procgroup.WithLimits(timeout.Config{Total: limit, Grace: 1200 * time.Millisecond}))
		if r != nil && r.Escalated && r.Elapsed < limit+4*time.Second {
			break
		}
	}
	if r == nil || !r.Escalated || r.Elapsed > limit+4*time.Second {
		t.Errorf("%+v, %v", r, err)
	}
	// SPEC 2.2: a negative one is none.
	for _, none := range []time.Duration{-1, math.MinInt64} {
		r, err = within(t, shortLimit, sleepCommand(), procgroup.WithLimits(timeout.Config{Total: shortLimit, Grace: none}))
		if r == nil || r.State == nil || r.State.String() != "signal: killed" {
			t.Errorf("%v: %+v, %v", none, r, err)
		}
	}
}

// SPEC 6.11: if a limit fires during the start, the start is completed and the command is then stopped.
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

// SPEC 6.9: a timeout of the execution whose context exec.CommandContext got is a timeout, although os/exec
// learns of the cancellation before the derived contexts do.
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
