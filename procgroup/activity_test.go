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
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// What must live through an idle limit: with output alone, with processor time, with bytes.
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

// SPEC 6.12: work is a sign of life where it is asked for, and nothing else is. All commands of two
// containments run at once: that is a busy machine, and no test runs beside it.
func TestActivity(t *testing.T) {
	const idle = 3 * time.Second
	commands := activities(t)
	var all sync.WaitGroup
	for i, c := range []procgroup.Containment{procgroup.Group, procgroup.Descendants, procgroup.Cgroup, procgroup.Helper} {
		if i%2 == 0 {
			all.Wait()
		}
		if c == procgroup.Cgroup {
			if _, err := procgroup.Run(t.Context(), exec.Command("true"), procgroup.WithContainment(c)); err != nil {
				t.Log("needs root or a delegated cgroup v2:", err)
				continue
			}
		}
		for name, command := range commands {
			for _, alive := range []struct {
				by       string
				activity procgroup.Activity
				want     bool
				signs    string
			}{
				{"output", procgroup.Activity{}, command.want.output, "output"},
				{"cpu", procgroup.Activity{CPU: true}, command.want.cpu, "output or work"},
				{"io", procgroup.Activity{IO: true}, command.want.io, "output or work"},
			} {
				if name == "compiler" && alive.by == "io" {
					continue // how it writes is its own business
				}
				if alive.by == "output" && c != procgroup.Descendants {
					continue // it is the same for all
				}
				ctx, cancel := context.WithCancel(t.Context())
				p, err := procgroup.Start(ctx, command.cmd(), procgroup.WithContainment(c), alive.activity,
					procgroup.WithLimits(timeout.Config{Total: longLimit, Idle: idle}), procgroup.WithKillGrace(-1), procgroup.WithOptions(timeout.WithName("tool")))
				if err != nil {
					cancel()
					t.Errorf("%v, %s, alive by %s: %v", c, name, alive.by, err)
					continue
				}
				reason, message := procgroup.IdleTimeout, "tool process timed out after 3000ms without "+alive.signs+"."
				if alive.want {
					reason, message = procgroup.Aborted, aborted
					time.AfterFunc(2*idle, cancel) // no doubt is left then
				}
				all.Go(func() {
					defer cancel()
					if r, err := p.Wait(); r.Reason != reason || r.Message != message {
						t.Errorf("%v, %s, alive by %s: %v\n%+v", c, name, alive.by, err, r)
					}
				})
			}
		}
	}
	all.Wait()
}

// SPEC 6.12: to start small programs is not work, unless the tree does nothing else.
func TestActivityOfShortPrograms(t *testing.T) {
	const idle = 3 * time.Second
	dir := t.TempDir()
	type row = struct {
		script string
		lives  bool
	}
	commands := map[string]row{
		"waits for a lock":   {"until mkdir . 2>/dev/null; do sleep 0.2; done", false},
		"lists every second": {"while :; do sleep 1; ls / >/dev/null; done", false},
		"find":               {"while :; do find /usr/bin /usr/lib -exec true {} \\; ; done", true},
	}
	if _, err := exec.LookPath("curl"); err == nil {
		commands["waits for a server"] = row{"until curl -sf http://127.0.0.1:1/; do sleep 1; done", false}
	}
	_, err := exec.LookPath("make")
	if cc, ccErr := exec.LookPath("cc"); err == nil && ccErr == nil {
		const source = "#include <stdio.h>\nint main(void) { return puts(\"\") < 0; }\n"
		makefile := "OBJECTS = $(shell seq 100000)\nall: $(OBJECTS)\n.PHONY: $(OBJECTS)\n$(OBJECTS):\n\t@" + cc + " -c -o /dev/null short.c\n"
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "short.c"), []byte(source), 0o600),
			os.WriteFile(filepath.Join(dir, "Makefile"), []byte(makefile), 0o600)); err != nil {
			t.Fatal(err)
		}
		commands["make"] = row{"exec make --no-print-directory", true}
		commands["configure"] = row{"while :; do echo 'int main(void) { return 0; }' >conftest.c && " + cc + " -o conftest conftest.c && ./conftest; done", true}
	}
	var all sync.WaitGroup
	for _, c := range []procgroup.Containment{procgroup.Group, procgroup.Descendants, procgroup.Cgroup} {
		if c == procgroup.Cgroup {
			if _, err := procgroup.Run(t.Context(), exec.Command("true"), procgroup.WithContainment(c)); err != nil {
				t.Log("needs root or a delegated cgroup v2:", err)
				continue
			}
		}
		for name, command := range commands {
			all.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				want := procgroup.IdleTimeout
				if command.lives {
					want = procgroup.Aborted
					time.AfterFunc(2*idle, cancel) // no doubt is left then
				}
				cmd := exec.Command("sh", "-c", command.script)
				cmd.Dir = dir
				r, err := procgroup.Run(ctx, cmd, procgroup.WithContainment(c), procgroup.Activity{CPU: true},
					procgroup.WithLimits(timeout.Config{Total: longLimit, Idle: idle}), procgroup.WithKillGrace(-1))
				if r == nil || r.Reason != want {
					t.Errorf("%v, %s: %v\n%+v", c, name, err, r)
				} else if !command.lives {
					t.Logf("%v, %s: %v", c, name, r.Elapsed)
				}
			})
		}
	}
	all.Wait()
}

// What has left the group counts as far as the containment finds it.
func TestActivityOutsideTheGroup(t *testing.T) {
	t.Parallel()
	eachContainment(t, func(t *testing.T, containment procgroup.Option) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
		defer cancel()
		r, err := procgroup.Run(ctx, exec.Command("sh", "-c", `setsid perl -e "$1" & exec sleep 120`, "sh", works), containment,
			procgroup.Activity{CPU: true, IO: true}, procgroup.WithLimits(timeout.Config{Idle: 3 * time.Second}),
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
	}, timeout.Config{Idle: 3 * time.Second, Total: 6 * time.Second})
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
