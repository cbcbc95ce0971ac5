//go:build linux

package procgroup_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Commands that must live through an idle limit: with output alone, with processor time, with bytes.
type lives struct{ output, cpu, io bool }

var (
	never  = lives{}
	always = lives{true, true, true}
	byCPU  = lives{cpu: true}
	byIO   = lives{io: true}
)

// works is a program in Perl that works a little at a time, so that it starves no test that runs beside it.
const works = `while (1) { $i++ for 1..200000; select undef, undef, undef, .1 }`

// activities are the commands of TestActivity.
func activities(t *testing.T) map[string]struct {
	cmd  func() *exec.Cmd
	want lives
} {
	shell := func(script string) func() *exec.Cmd {
		return func() *exec.Cmd { return exec.Command("sh", "-c", script) }
	}
	perl := func(script string) func() *exec.Cmd {
		return func() *exec.Cmd { return exec.Command("perl", "-e", script) }
	}
	dir := t.TempDir()
	lock, fifo := filepath.Join(dir, "lock"), filepath.Join(dir, "fifo")
	held, err := os.Create(lock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { held.Close() })
	if err := errors.Join(unix.Flock(int(held.Fd()), unix.LOCK_EX), unix.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	type row = struct {
		cmd  func() *exec.Cmd
		want lives
	}
	all := map[string]row{
		"asleep":                    {shell("sleep 120"), never},
		"prints":                    {shell("while :; do echo .; sleep 0.1; done"), always},
		"busy loop":                 {shell("while :; do :; done"), byCPU},
		"block-buffered output":     {perl(`while (1) { $i++ for 1..200000; print "$i\n"; select undef, undef, undef, .1 }`), byCPU},
		"short-lived children":      {shell("while :; do (i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done); sleep 1; done"), byCPU},
		"busy child, in the group":  {perl("if (fork) { wait } else { " + works + " }"), byCPU},
		"busy and not waited for":   {perl("if (fork) { sleep 120 } else { " + works + " }"), byCPU},
		"reads a little at a time":  {perl(`open F, "/dev/zero"; while (1) { sysread F, $b, 20000; select undef, undef, undef, .1 }`), byIO},
		"writes a little at a time": {perl(`open F, ">/dev/null"; while (1) { syswrite F, "x" x 20000; select undef, undef, undef, .1 }`), byIO},
		"polls every 10 ms":         {perl(`select undef, undef, undef, .01 while 1`), never},
		"polls a file":              {perl(`while (1) { open F, "/proc/loadavg"; <F>; select undef, undef, undef, .1 }`), never},
		"waits for a lock":          {func() *exec.Cmd { return exec.Command("flock", lock, "true") }, never},
		"waits for a pipe":          {func() *exec.Cmd { return exec.Command("cat", fifo) }, never},
		"zombie":                    {shell("true & exec sleep 120"), never},
		"stopped":                   {shell("(kill -STOP $$; kill -STOP 0) & while :; do :; done"), never},
		"worked, and is stuck":      {perl(`$i++ while $i < 3000000; sleep 120`), never},
	}
	if python, err := exec.Command("python3", "-c", "import sys; print(sys.executable, end='')").Output(); err == nil {
		all["python3, block-buffered output"] = row{func() *exec.Cmd {
			return exec.Command("env", "-u", "PYTHONUNBUFFERED", string(python), "-c", "import time\nwhile True:\n  print(sum(range(300000)))\n  time.sleep(.1)")
		}, byCPU}
	}
	if cc, err := exec.LookPath("cc"); err == nil {
		file := filepath.Join(dir, "large.c")
		var source strings.Builder
		for i := range 4000 {
			fmt.Fprintf(&source, "int f%d(int *a, int n) { int s = 0; for (int i = 0; i < n; i++) for (int j = 0; j < i; j++) s += a[i] * a[j] ^ %d; return s; }\n", i, i)
		}
		if err := os.WriteFile(file, []byte(source.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		all["compiler"] = row{func() *exec.Cmd { return exec.Command(cc, "-O3", "-c", "-o", os.DevNull, file) }, byCPU}
	}
	return all
}

// byMembers are those of them that tell whether a containment finds the processes that work; the others
// tell what work is, which /proc says of all members alike.
var byMembers = []string{"asleep", "busy child, in the group", "busy and not waited for", "reads a little at a time"}

// alwaysBusy are those that take a whole processor: one case each is enough, and a short limit.
var alwaysBusy = []string{"busy loop", "compiler"}

// An activityCase is one command, in one containment, with one sign of life.
type activityCase struct {
	containment procgroup.Containment
	command     string
	by          string
	activity    procgroup.Activity
	alive       bool
	signs       string
	idle        time.Duration
}

// lived is how long a command has lived that its work has kept alive: nothing that it did in the first quarter of the limit,
// as to start, has kept it alive for so long.
func lived(idle time.Duration) time.Duration { return idle + idle/2 }

// SPEC 6.12: work is a sign of life where it is asked for, and nothing else is. All commands of all
// containments run at once: that is a busy machine, and no test runs beside it. If it is so busy that this
// process cannot look in time, which the promise leaves out, a tree that works is stopped; and so is one
// whose program took longer to start. Such a case is run once more, beside those that failed too, with more
// time. That one that does not work lives on is never due to that.
func TestActivity(t *testing.T) {
	const idle, busyIdle, again = 3 * time.Second, time.Second, 12 * time.Second
	commands := activities(t)
	var cases []activityCase
	for _, c := range []procgroup.Containment{procgroup.Group, procgroup.Descendants, procgroup.Cgroup, procgroup.Helper} {
		if c == procgroup.Cgroup {
			if _, err := procgroup.Run(t.Context(), exec.Command("true"), procgroup.WithContainment(c)); err != nil {
				t.Log("needs root or a delegated cgroup v2:", err)
				continue
			}
		}
		for name, command := range commands {
			if (c == procgroup.Group || c == procgroup.Helper) && !slices.Contains(byMembers, name) {
				continue
			}
			if slices.Contains(alwaysBusy, name) {
				if c == procgroup.Descendants {
					cases = append(cases, activityCase{c, name, "cpu", procgroup.Activity{CPU: true}, command.want.cpu, "output or work", busyIdle})
				}
				continue
			}
			if c == procgroup.Descendants { // it is the same for all
				cases = append(cases, activityCase{c, name, "output", procgroup.Activity{}, command.want.output, "output", idle})
			}
			cases = append(cases, activityCase{c, name, "cpu", procgroup.Activity{CPU: true}, command.want.cpu, "output or work", idle})
			cases = append(cases, activityCase{c, name, "io", procgroup.Activity{IO: true}, command.want.io, "output or work", idle})
		}
	}
	// start starts a command, and returns a function that waits for its end.
	start := func(tt activityCase) (wait func() error) {
		ctx, cancel := context.WithCancel(t.Context())
		p, err := procgroup.Start(ctx, commands[tt.command].cmd(), procgroup.WithContainment(tt.containment), tt.activity,
			procgroup.WithLimits(timeout.Config{Total: longLimit, Idle: tt.idle}), procgroup.WithKillGrace(-1), procgroup.WithOptions(timeout.WithName("tool")))
		if err != nil {
			cancel()
			return func() error { return fmt.Errorf("%v, %s, alive by %s: %w", tt.containment, tt.command, tt.by, err) }
		}
		reason, message := procgroup.IdleTimeout, fmt.Sprintf("tool process timed out after %dms without %s.", tt.idle.Milliseconds(), tt.signs)
		if tt.alive {
			reason, message = procgroup.Aborted, aborted
			time.AfterFunc(lived(tt.idle), cancel)
		}
		return func() error {
			defer cancel()
			if r, err := p.Wait(); r.Reason != reason || r.Message != message {
				return fmt.Errorf("%v, %s, alive by %s: %w\n%+v", tt.containment, tt.command, tt.by, err, r)
			}
			return nil
		}
	}
	most := len(cases) / 4 // more than that is no matter of time
	for _, report := range []func(...any){t.Log, t.Error} {
		var round sync.WaitGroup
		var mu sync.Mutex
		var failed []activityCase
		for _, tt := range cases {
			wait := start(tt)
			round.Go(func() {
				switch err := wait(); {
				case err == nil:
				case tt.alive:
					mu.Lock()
					defer mu.Unlock()
					tt.idle = again
					failed = append(failed, tt)
					report(err)
				default:
					t.Error(err)
				}
			})
		}
		round.Wait()
		if cases = failed; len(cases) > most {
			t.Fatalf("%d failed, too many to try again", len(cases))
		}
	}
}

// SPEC 6.12: to start small programs is not work, unless the tree does nothing else.
func TestActivityOfShortPrograms(t *testing.T) {
	const idle, busyIdle, again = 3 * time.Second, 2500 * time.Millisecond, 12 * time.Second
	dir := t.TempDir()
	// What is busy all the time holds up the others, so each such command is in those containments only that find
	// processes by different means.
	all := []procgroup.Containment{procgroup.Group, procgroup.Descendants, procgroup.Cgroup}
	type row = struct {
		script string
		pause  time.Duration // of one that polls, which adds a byte to $ROUNDS after each; the others are busy
		in     []procgroup.Containment
	}
	commands := map[string]row{
		"waits for a lock":   {"until mkdir . 2>/dev/null; do sleep 0.2; echo >>$ROUNDS; done", 200 * time.Millisecond, all},
		"lists every second": {"while :; do sleep 1; echo >>$ROUNDS; ls / >/dev/null; done", time.Second, all},
		"find":               {"while :; do find /usr/bin /usr/lib -exec true {} \\; ; done", 0, all[1:]},
	}
	if _, err := exec.LookPath("curl"); err == nil {
		commands["waits for a server"] = row{"until curl -sf http://127.0.0.1:1/; do sleep 1; echo >>$ROUNDS; done", time.Second, all}
	}
	_, err := exec.LookPath("make")
	if cc, ccErr := exec.LookPath("cc"); err == nil && ccErr == nil {
		const source = "#include <stdio.h>\nint main(void) { return puts(\"\") < 0; }\n"
		makefile := "OBJECTS = $(shell seq 100000)\nall: $(OBJECTS)\n.PHONY: $(OBJECTS)\n$(OBJECTS):\n\t@" + cc + " -c -o /dev/null short.c\n"
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "short.c"), []byte(source), 0o600),
			os.WriteFile(filepath.Join(dir, "Makefile"), []byte(makefile), 0o600)); err != nil {
			t.Fatal(err)
		}
		commands["make"] = row{"exec make --no-print-directory", 0, all[:1]}
		commands["configure"] = row{"while :; do echo 'int main(void) { return 0; }' >conftest.c && " + cc + " -o conftest conftest.c && ./conftest; done", 0, all[1:2]}
	}
	run := func(c procgroup.Containment, name string, limit time.Duration) error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		command, want := commands[name], procgroup.IdleTimeout
		if command.pause == 0 {
			want = procgroup.Aborted
			time.AfterFunc(lived(limit), cancel)
		}
		cmd := exec.Command("sh", "-c", command.script)
		cmd.Dir = dir
		rounds := filepath.Join(dir, fmt.Sprintf("%v, %s", c, name))
		cmd.Env = append(os.Environ(), "ROUNDS="+rounds)
		r, err := procgroup.Run(ctx, cmd, procgroup.WithContainment(c), procgroup.Activity{CPU: true},
			procgroup.WithLimits(timeout.Config{Total: longLimit, Idle: limit}), procgroup.WithKillGrace(-1))
		polled, _ := os.ReadFile(rounds)
		paused := time.Duration(len(polled)) * command.pause
		switch {
		case r == nil || r.Reason != want && (r.Reason != procgroup.TotalTimeout || paused > r.Elapsed/2):
			return fmt.Errorf("%v, %s, paused for %v: %w\n%+v", c, name, paused, err, r)
		case r.Reason != want: // the documented exception
			t.Logf("%v, %s paused for %v of %v, and was running or waiting for a processor otherwise", c, name, paused, r.Elapsed)
		case command.pause > 0:
			t.Logf("%v, %s: %v", c, name, r.Elapsed)
		}
		return nil
	}
	var running sync.WaitGroup
	var alone []func() error // what is to be run once more
	var mu sync.Mutex
	for _, c := range all {
		if c == procgroup.Cgroup {
			if _, err := procgroup.Run(t.Context(), exec.Command("true"), procgroup.WithContainment(c)); err != nil {
				t.Log("needs root or a delegated cgroup v2:", err)
				continue
			}
		}
		for name, command := range commands {
			if !slices.Contains(command.in, c) {
				continue
			}
			running.Go(func() {
				if command.pause > 0 {
					if err := run(c, name, idle); err != nil {
						t.Error(err)
					}
				} else if err := run(c, name, busyIdle); err != nil {
					t.Log(err) // those beside it may have left it no processor
					mu.Lock()
					defer mu.Unlock()
					alone = append(alone, func() error { return run(c, name, again) })
				}
			})
		}
	}
	running.Wait()
	for _, again := range alone {
		if err := again(); err != nil {
			t.Error(err)
		}
	}
}

// A process that has left the group counts as far as the containment finds it.
func TestActivityOutsideTheGroup(t *testing.T) {
	t.Parallel()
	eachContainment(t, func(t *testing.T, containment procgroup.Option) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), lived(20*time.Second))
		defer cancel()
		r, err := procgroup.Run(ctx, exec.Command("sh", "-c", `setsid perl -e "$1" & exec sleep 120`, "sh", works), containment,
			procgroup.Activity{CPU: true, IO: true}, procgroup.WithLimits(timeout.Config{Idle: 20 * time.Second}),
			procgroup.WithKillGrace(-1))
		if r == nil || r.Reason != procgroup.TotalTimeout {
			t.Errorf("%v, %+v", err, r)
		}
	})
}

// A tool's idle limit is renewed by the work of the command that it runs, and so are all
// around.
func TestActivityBeatsForTheExecutionAround(t *testing.T) {
	t.Parallel()
	var r *procgroup.Result
	err := timeout.Run(t.Context(), func(ctx context.Context) (err error) {
		r, err = procgroup.Run(ctx, exec.Command("perl", "-e", works),
			procgroup.Activity{CPU: true, IO: true}, procgroup.WithKillGrace(-1))
		return err
	}, timeout.Config{Idle: 15 * time.Second, Total: lived(15 * time.Second)})
	if !errors.Is(err, timeout.ErrTotal) || r.Reason != procgroup.TotalTimeout {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestActivityRefused(t *testing.T) {
	for _, tt := range []struct {
		activity procgroup.Activity
		want     string
	}{
		{procgroup.Activity{CPU: true, CPURate: -1}, "Activity.CPURate"},
		{procgroup.Activity{IO: true, IORate: math.NaN()}, "Activity.IORate"},
		{procgroup.Activity{CPU: true, CPURate: math.Inf(1)}, "Activity.CPURate"},
	} {
		r, err := procgroup.Run(t.Context(), exec.Command("true"), tt.activity)
		var bad *timeout.ConfigError
		if r != nil || !errors.As(err, &bad) || bad.Key != tt.want {
			t.Errorf("%+v: %v", tt.activity, err)
		}
	}
}
