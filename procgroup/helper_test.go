//go:build linux

package procgroup_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// hungEnv makes a helper hang before its main, as a program does whose init waits for
// something.
const hungEnv = "PROCGROUP_TEST_HUNG_HELPER"

func init() {
	if os.Getenv(hungEnv) != "" && os.Getenv("TOOLDEADLINE_HELPER") != "" {
		time.Sleep(forever)
	}
}

// SPEC 6.11: a helper that hangs at its start holds up the call no longer than a command
// that hangs: a limit or an abort ends that too.
func TestHelperHangsAtItsStart(t *testing.T) {
	t.Parallel()
	const bound = 15 * time.Second // half of what the start itself may take
	hung := func() *exec.Cmd {
		cmd := command("exit", "0")
		cmd.Env = append(cmd.Env, hungEnv+"=1")
		return cmd
	}
	plain() // building it takes longer than the limit
	limits := timeout.Config{Total: shortLimit}
	for _, tt := range []struct {
		name string
		run  func() (*procgroup.Result, error)
		is   error
	}{
		{"limit", func() (*procgroup.Result, error) {
			return procgroup.Run(context.Background(), hung(), procgroup.WithContainment(procgroup.Helper), procgroup.WithLimits(limits))
		}, timeout.ErrTotal},
		{"abort", func() (*procgroup.Result, error) {
			ctx, cancel := context.WithCancel(context.Background())
			defer time.AfterFunc(shortLimit, cancel).Stop()
			return procgroup.Run(ctx, hung(), procgroup.WithContainment(procgroup.Helper))
		}, timeout.ErrAborted},
		{"limit of the execution around", func() (r *procgroup.Result, err error) {
			_ = timeout.Run(context.Background(), func(ctx context.Context) error {
				r, err = procgroup.Run(ctx, hung(), procgroup.WithContainment(procgroup.Helper))
				return err
			}, limits)
			return r, err
		}, timeout.ErrTotal},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			r, err := tt.run()
			if took := time.Since(begun); took > bound {
				t.Errorf("took %v", took)
			}
			if r != nil || !errors.Is(err, tt.is) {
				t.Errorf("%+v, %v; want %v", r, err, tt.is)
			}
		})
	}
}

// A command that stops its helper and then waits is asked to end like any other, its own
// end is seen within the grace, and it does not outlive the call.
func TestHelperIsStopped(t *testing.T) {
	t.Parallel()
	const limit = 25 * time.Second // for a busy machine to get as far as the trap
	stopHelper := `sleep 0.2; kill -STOP $PPID; trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done`
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		r, err := within(t, limit, exec.Command("sh", "-c", stopHelper),
			total(limit, procgroup.WithContainment(procgroup.Helper), procgroup.WithKillGrace(longLimit))...)
		check(t, r, err, want{code: 124, reason: procgroup.TotalTimeout, message: "tool process timed out after 25000ms."})
		if r.State == nil || r.State.ExitCode() != 3 {
			t.Errorf("state %v", r.State)
		}
	})
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		deaf := exec.Command("sh", "-c", `sleep 0.2; kill -STOP $PPID; trap "" TERM; echo $$; while :; do sleep 0.05; done`)
		r, err := within(t, limit, deaf, total(limit, procgroup.WithContainment(procgroup.Helper))...)
		check(t, r, err, want{code: 124, reason: procgroup.TotalTimeout, message: "tool process timed out after 25000ms.", escalated: true})
		mustBeDead(t, []int{atoi(strings.TrimSpace(r.Stdout.String()))})
	})
}

func init() { modes["jailer"] = jailer }

// jailer keeps its parent, the helper, stopped, and writes a file when that is gone.
func jailer(args []string) int {
	signal.Ignore(syscall.SIGTERM)
	helper := os.Getppid()
	for { // it has something to report first
		if _, err := os.Stat(args[1]); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	for begun := time.Now(); time.Since(begun) < forever; {
		_ = syscall.Kill(helper, syscall.SIGSTOP)
		_ = os.WriteFile(args[2], nil, 0o600)
		if os.Getppid() != helper {
			_ = os.WriteFile(args[0], nil, 0o600)
			return 0
		}
	}
	return 0
}

// A helper that does not get on is killed, and what it was to kill is killed first: this process
// may end in between, and nobody else would.
func TestHelperIsKilledLast(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	outlived, begin, jailed := filepath.Join(dir, "outlived"), filepath.Join(dir, "begin"), filepath.Join(dir, "jailed")
	ready := func() bool { // it is asked once the command has been started
		_ = os.WriteFile(begin, nil, 0o600)
		return there(jailed)()
	}
	r, err := stopWhen(t, ready, command("jailer", outlived, begin, jailed), procgroup.WithContainment(procgroup.Helper))
	if r == nil || r.ExitCode != 130 || len(undying(r.Survivors)) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := os.Stat(outlived); err == nil {
		t.Error("the command has outlived its helper")
	}
}

// The error of a command that cannot be started is the same with a helper as without.
func TestHelperGivesTheSameErrors(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for _, tt := range []struct {
		name string
		cmd  func() *exec.Cmd
		code int
	}{
		{"no path", func() *exec.Cmd { return &exec.Cmd{} }, 127},
		{"no name", func() *exec.Cmd { return exec.Command("") }, 127},
		{"missing", func() *exec.Cmd { return exec.Command(missing) }, 127},
		{"directory", func() *exec.Cmd { return exec.Command(t.TempDir()) }, 126},
		{"no such directory to run in", func() *exec.Cmd { c := exec.Command("/bin/true"); c.Dir = missing; return c }, 1},
		{"a file to run in", func() *exec.Cmd { c := exec.Command("/bin/true"); c.Dir = "/bin/true"; return c }, 126},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, plain := procgroup.Run(context.Background(), tt.cmd(), procgroup.WithContainment(procgroup.Group))
			_, helped := procgroup.Run(context.Background(), tt.cmd(), procgroup.WithContainment(procgroup.Helper))
			if plain == nil || helped == nil || numberless(plain) != numberless(helped) {
				t.Errorf("%v; with a helper %v", plain, helped)
			}
			if a, b := timeout.ExitCode(plain), timeout.ExitCode(helped); a != tt.code || b != tt.code {
				t.Errorf("codes %d, with a helper %d; want %d", a, b, tt.code)
			}
		})
	}
}

// numberless is the text of an error without the number of the temporary directory.
func numberless(err error) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, err.Error())
}

// A helper whose host is gone, and that has killed all processes that can be killed, is quiet while
// it waits for what cannot.
func TestHelperWaitsQuietly(t *testing.T) {
	t.Parallel()
	needRoot(t)
	freeze, thaw := freezer(t)
	cmd, pids := family(t, "run", "helper", "busy")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the tree", func() bool { return len(pids()) >= 2 })
	helper := 0
	for _, pid := range pids() {
		if pid != cmd.Process.Pid {
			s, _ := statOf(pid)
			helper = s.ppid
			if err := freeze(pid); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for left := 5; ; left-- { // on a busy machine it may still be killing the others
		time.Sleep(2 * time.Second)
		before := switches(helper)
		time.Sleep(time.Second)
		n := switches(helper) - before
		if before > 0 && n <= 400 { // it would be thousands
			break
		}
		if left == 0 {
			t.Errorf("%d context switches in a second, after %d", n, before)
			break
		}
	}
	thaw()
	until(t, "the end of the helper", func() bool { return !alive(helper) })
	mustBeDead(t, pids())
}

// SPEC 6.11: a helper that cannot even be killed holds up nothing, with orphans neither.
// The exit status that it was to give is not made up.
func TestHelperIsUnkillable(t *testing.T) {
	t.Parallel()
	needRoot(t)
	for _, orphans := range []bool{false, true} {
		t.Run(strconv.FormatBool(orphans), func(t *testing.T) {
			t.Parallel()
			freeze, thaw := freezer(t)
			defer thaw()
			// The helper has to be frozen after it has reported the end of the command, and before it
			// is asked to end: while this package waits for the process that holds the pipe.
			for try := 0; ; try++ {
				if try == 50 {
					t.Fatal("the helper is always gone before it can be frozen")
				}
				cmd, pids := family(t, "tree", "hold", "exit", "0")
				opts := []procgroup.Option{procgroup.WithContainment(procgroup.Helper), procgroup.WithKillGrace(longLimit)}
				if orphans {
					opts = append(opts, procgroup.WithOrphans())
				}
				p, err := procgroup.Start(context.Background(), cmd, opts...)
				if err != nil {
					t.Fatal(err)
				}
				command := helped(p.Pid, "hold")
				until(t, "the end of the command", func() bool { return command <= 0 || !statReaped(command) })
				// The helper has reaped it, and reports that before it rests.
				rests := 0
				until(t, "the helper to rest", func() bool {
					rests++
					if busyThreads(p.Pid) {
						rests = 0
					}
					return rests > 20 // some 2 ms apart
				})
				frozen := command > 0 && freeze(p.Pid) == nil
				begun := time.Now()
				r, err := p.Wait()
				if took := time.Since(begun); took > time.Second+slack {
					t.Errorf("took %v", took)
				}
				thaw()
				for _, pid := range pids() {
					killPid(pid) // those that may live on
				}
				if !frozen || r.State != nil {
					continue
				}
				if r.ExitCode != 1 || err == nil || r.Reason != procgroup.Exited || !r.PipeHeld || r.Stdout.Total == 0 {
					t.Errorf("%+v, %v", r, err)
				}
				return
			}
		})
	}
}

// helped is the command of a helper, 0 if that has gone: the child that has the argument. The orphans of
// a command are children of the helper, too.
func helped(helper int, arg string) int {
	for child, s := range processes() {
		args, _ := os.ReadFile("/proc/" + strconv.Itoa(child) + "/cmdline")
		if s.ppid == helper && slices.Contains(strings.Split(string(args), "\x00"), arg) {
			return child
		}
	}
	return 0
}

// busyThreads reports whether a thread of a process runs, or would if it got a processor.
func busyThreads(pid int) bool {
	files, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/stat")
	return slices.ContainsFunc(files, func(file string) bool {
		b, _ := os.ReadFile(file)
		return bytes.Contains(b, []byte(") R "))
	})
}

// switches is how often the threads of a process went to sleep.
func switches(pid int) (n int) {
	files, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/status")
	for _, file := range files {
		b, _ := os.ReadFile(file)
		_, rest, _ := strings.Cut(string(b), "\nvoluntary_ctxt_switches:")
		line, _, _ := strings.Cut(rest, "\n")
		m, _ := strconv.Atoi(strings.TrimSpace(line))
		n += m
	}
	return n
}

// SPEC 5.1, 6.6: a descendant that cannot be killed is listed, and the command's own exit
// code is kept.
func TestHelperKeepsTheCode(t *testing.T) {
	t.Parallel()
	needRoot(t)
	freeze, thaw := freezer(t)
	defer thaw()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command("sh", "-c", "setsid sleep 120 >/dev/null 2>&1 & echo $!; read line; exit 3")
	cmd.Stdin = r
	printed := make(chan int, 1)
	p, err := procgroup.Start(context.Background(), cmd, procgroup.WithContainment(procgroup.Helper),
		procgroup.WithOutput(procgroup.Lines(func(line string, _ bool) { printed <- atoi(line) })))
	if err != nil {
		t.Fatal(err)
	}
	pid := <-printed
	if err := freeze(pid); err != nil {
		t.Fatal(err)
	}
	w.Close()
	res, err := p.Wait()
	if res.ExitCode != 3 || timeout.ExitCode(err) != 3 || len(res.Survivors) != 1 || res.Survivors[0] != pid || res.Elapsed > time.Second+slack {
		t.Errorf("%+v, %v; want code 3 and survivor %d", res, err, pid)
	}
	thaw()
	killPid(pid)
}
