//go:build unix

package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// TestIdle proves that output, and nothing else, renews the idle limit (SPEC 3.1, 5.2,
// 6.2), and that it comes through as it was written.
func TestIdle(t *testing.T) {
	t.Parallel()
	bin := ours(t)
	for _, c := range []struct {
		name, script string
		want         result
	}{
		{"silent", "exec deadline --idle .2 60 sh -c 'echo begun; echo >up; sleep 60; echo no'",
			result{"exit status 124", "begun\n", ""}},
		{"silent from the start", "exec deadline --idle .3 0 sleep 30",
			result{"exit status 124", "", ""}},
		{"verbose", "exec deadline -v --idle .25 60 sleep 30",
			result{"exit status 124", "", "deadline: no output from command 'sleep' for 250ms\n" +
				"deadline: sending signal TERM to command 'sleep'\n"}},
		{"last words", "exec deadline --idle .2 60 sh -c 'trap \"trap : TERM; echo caught; exit 0\" TERM; sleep 5 & wait'",
			result{"exit status 124", "caught\n", ""}},
		{"kill", "exec deadline -v -k .2 --idle .2 60 sh -c 'trap \"\" TERM; sleep 60; sleep 60'",
			result{"signal: killed", "", "deadline: no output from command 'sh' for 200ms\n" +
				"deadline: sending signal TERM to command 'sh'\n" +
				"deadline: sending signal KILL to command 'sh'\n"}},
		{"the total still holds", "exec deadline -v --idle .2 1 sh -c 'exec 2>/dev/null; trap \"trap : TERM; until [ -e sent ]; do sleep .01; done; trap - TERM; sleep 60 & wait\" TERM; sleep 60 & wait'",
			result{"exit status 124", "", "deadline: no output from command 'sh' for 200ms\n" +
				"deadline: sending signal TERM to command 'sh'\n" +
				"deadline: sending signal TERM to command 'sh'\n"}},
		{"total", "exec deadline -v --idle 30 .3 sleep 30",
			result{"exit status 124", "", "deadline: sending signal TERM to command 'sleep'\n"}},
		{"total below idle", "exec deadline -v --idle 5d .3 sh -c 'while :; do echo; sleep .1; done' >/dev/null",
			result{"exit status 124", "", "deadline: sending signal TERM to command 'sh'\n"}},
		{"switched off", "exec deadline --idle 0 60 sh -c '[ /proc/self/fd/1 -ef /dev/null ] && exit 3' >/dev/null",
			result{"exit status 3", "", ""}},
		{"one order for both streams", "exec deadline --idle 30 60 sh -c 'for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; done' 2>&1",
			result{"exit status 0", "o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\no6\ne6\no7\ne7\no8\ne8\no9\ne9\n", ""}},
		{"reader gone", "{ deadline --idle 30 60 yes; echo $? >&2; } | head -n1",
			result{"exit status 0", "y\n", "141\n"}},
		{"disk full", "exec deadline --idle 30 60 sh -c 'trap \"\" PIPE; echo x; sleep .3; echo x; exit 6' >/dev/full 2>log; ",
			result{"exit status 6", "", ""}},
		{"stdin", "echo in | deadline --idle 30 60 cat", result{"exit status 0", "in\n", ""}},
		{"bad limit", "exec deadline --idle never 60 true",
			result{"exit status 125", "", "deadline: invalid time interval 'never'\nTry 'deadline --help' for more information.\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := runScript(t, bin, c.script)
			got.Stderr = treeLines.ReplaceAllString(got.Stderr, "")
			if got != c.want {
				t.Errorf("%s\ngot  %q\nwant %q", c.script, got, c.want)
			}
		})
	}
}

// TestLastWords: processes that the command leaves running may still write for a short time. On a busy
// machine that may be over before they get the processor, but not each time.
func TestLastWords(t *testing.T) {
	t.Parallel()
	bin := ours(t)
	for try := 1; ; try++ {
		got := runScript(t, bin, "exec deadline --idle 30 60 sh -c '{ sleep .02; echo y; } & echo x'")
		if got == (result{"exit status 0", "x\ny\n", ""}) {
			return
		}
		if got != (result{"exit status 0", "x\n", ""}) || try == 5 {
			t.Fatalf("%q", got)
		}
	}
}

// treeLines are what -v says of the command's processes: TestAlive has them.
var treeLines = regexp.MustCompile(`(?m)^deadline:   .*\n`)

// TestAlive proves that --alive decides what renews the idle limit, and that -v shows what
// the command was doing (SPEC 6.12).
func TestAlive(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system cannot tell how much a command works; it is refused")
	}
	bin := ours(t)
	// What is idle has a total limit far off, or a machine that stood still would be what decides.
	// What works has one after the time at which it would be stopped if no look saw its work. It works for longer than
	// starting its sleep takes, which is not counted, also where page faults are slow.
	const busy = " sh -c 'while :; do i=0; while test $i -lt 100000; do i=$((i+1)); done; sleep .5; done'"
	for _, c := range []struct {
		name, script string
		idle         string // what it is stopped for as idle, or ""
	}{
		{"busy, output", "exec deadline -v --idle .3 --alive=output 60" + busy, "output"},
		{"busy, cpu", "exec deadline -v --idle 3 --alive=cpu 5" + busy, ""},
		{"asleep, all", "exec deadline -v --idle .3 --alive=cpu,io,output 60 sleep 30", "output or work"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := runScript(t, bin, c.script)
			idle := strings.Contains(got.Stderr, "deadline: no "+c.idle+" from command")
			if got.Exit != "exit status 124" || idle != (c.idle != "") || strings.Contains(got.Stderr, "deadline: no ") != idle {
				t.Errorf("%s\n%+v", c.script, got)
			}
			if !regexp.MustCompile(`(?m)^deadline:   PID .*COMMAND\ndeadline:   \d+ .*(sh -c|sleep 30|\[sh\]|\[sleep\])`).MatchString(got.Stderr) {
				t.Fatalf("no tree in %q", got.Stderr)
			}
		})
	}
	for script, want := range map[string]string{
		"exec deadline --idle 1 --alive=output,disk 2 true": "deadline: invalid argument 'output,disk' for '--alive': want output, cpu or io, separated by commas\n",
		"exec deadline --idle 1 --alive= 2 true":            "deadline: invalid argument '' for '--alive': want output, cpu or io, separated by commas\n",
		"exec deadline --alive=cpu 2 true":                  "deadline: option '--alive' needs '--idle'\n",
	} {
		if got := runScript(t, bin, script); got != (result{"exit status 125", "", want + "Try 'deadline --help' for more information.\n"}) {
			t.Errorf("%s\n%+v", script, got)
		}
	}
}

// TestConsumer: what the command has written arrives, or it is said how much does not
// (SPEC 6.14).
func TestConsumer(t *testing.T) {
	t.Parallel()
	const written = 100_000 // more than fits into the pipe that nobody reads, and not more than fits into ours, too
	bin := ours(t)
	lost := regexp.MustCompile(`deadline: lost (\d+) bytes of output of command 'sh', which nobody read in time\n`)
	for _, c := range []struct {
		name, script string
		after        string // begin to read when this stands on the standard error
		all          bool
		exit         string
	}{
		{"late after the limit", "exec deadline -v --idle 30 60 sh -c 'head -c 100000 /dev/zero; kill -ALRM $PPID; sleep 60'",
			"TERM", true, "exit status 124"},
		{"late after a signal", "exec deadline -v --idle 30 60 sh -c 'head -c 100000 /dev/zero; kill -HUP $PPID; sleep 60'",
			"HUP", true, "signal: hangup"},
		{"late after the kill", "exec deadline -v --idle 30 -k .2 60 sh -c 'trap \"\" TERM; head -c 100000 /dev/zero; kill -ALRM $PPID; sleep 60; sleep 60'",
			"KILL", true, "signal: killed"},
		{"late after the end", "exec deadline --idle 30 60 sh -c 'head -c 100000 /dev/zero; echo ended >&2'",
			"ended", true, "exit status 0"},
		{"never after the limit", "exec deadline -k .2 --idle 30 60 sh -c 'head -c 100000 /dev/zero; kill -ALRM $PPID; sleep 60'",
			"lost", false, "exit status 124"},
		{"never after the kill", "exec deadline -k .2 --idle 30 60 sh -c 'trap \"\" TERM; head -c 100000 /dev/zero; kill -ALRM $PPID; sleep 60; sleep 60'",
			"lost", false, "signal: killed"},
		{"never after the end", "exec deadline -k .2 --idle 30 .5 sh -c 'head -c 100000 /dev/zero'",
			"lost", false, "exit status 124"},
		{"never after a signal to us", "exec deadline -k .2 --idle 30 60 sh -c 'head -c 100000 /dev/zero; (while kill -0 $$ 2>/dev/null; do sleep .1; done; kill -HUP $PPID) & exit 3'",
			"lost", false, "exit status 125"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd, mark := prepare(t, bin, c.script)
			r, w := newPipe(t)
			cmd.Stdout = w
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			w.Close()
			var said strings.Builder
			for buf := make([]byte, 4096); !strings.Contains(said.String(), c.after); {
				n, err := stderr.Read(buf)
				said.Write(buf[:n])
				if err != nil {
					t.Fatalf("%v after %q", err, said.String())
				}
			}
			end := func() {
				rest, _ := io.ReadAll(stderr)
				said.Write(rest)
				_ = cmd.Wait()
			}
			if !c.all {
				end()
			}
			got, err := io.Copy(io.Discard, r)
			if err != nil {
				t.Fatal(err)
			}
			if c.all {
				end()
			}
			missing := 0
			if m := lost.FindStringSubmatch(said.String()); m != nil {
				missing, _ = strconv.Atoi(m[1])
			}
			if int(got)+missing != written || c.all != (missing == 0) {
				t.Errorf("%d bytes came through, and %q", got, said.String())
			}
			if exit := cmd.ProcessState.String(); exit != c.exit {
				t.Errorf("%s, want %s", exit, c.exit)
			}
			harness.None(t, mark)
		})
	}
}

// SPEC 5.2, 6.2: a piece of output is a beat, on either stream, also without the end of a line.
func TestOutputBeats(t *testing.T) {
	_ = timeout.Run(t.Context(), func(ctx context.Context) error {
		there, here := newPipe(t)
		r, w := newPipe(t)
		p := &pipe{r: r, w: w, file: stdio.New(here), report: t.Errorf}
		o := &output{pipes: []*pipe{p}, done: make(chan struct{})}
		o.start(ctx)
		for range 5 {
			begun := time.Now()
			if _, err := w.WriteString("."); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(there, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			harness.Eventually(t, "a beat", func() bool { return time.Now().Add(-timeout.FromContext(ctx).Snapshot().SinceBeat).After(begun) })
		}
		w.Close()
		<-o.done
		return nil
	}, timeout.Config{})
}

// TestDirect: without --idle, the command has the streams themselves.
func TestDirect(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("needs /proc")
	}
	t.Parallel()
	file := filepath.Join(t.TempDir(), "out")
	got := runScript(t, ours(t), "exec deadline 60 readlink /proc/self/fd/1 >"+file)
	out, err := os.ReadFile(file)
	if err != nil || strings.TrimSpace(string(out)) != file || got != (result{Exit: "exit status 0"}) {
		t.Errorf("%q, %q, %v", out, got, err)
	}
}
