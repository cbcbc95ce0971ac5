//go:build linux

package procgroup_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

func killPid(pid int) { _ = unix.Kill(pid, unix.SIGKILL) }

// supervise runs a mode of supervisor_test.go and returns its report.
func supervise(t *testing.T, cmd *exec.Cmd) (rep report) {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, &stderr)
	}
	if err := json.Unmarshal(out, &rep); err != nil {
		t.Fatalf("%v\n%s%s", err, out, &stderr)
	}
	for _, e := range rep.Errors {
		t.Error(e)
	}
	return rep
}

// freezer makes processes unkillable for a while.
func freezer(t *testing.T) (freeze func(pid int) error, thaw func()) {
	t.Helper()
	dir, err := os.MkdirTemp("/sys/fs/cgroup/freezer", "procgroup-test")
	if err != nil {
		t.Skip("needs the freezer of cgroup v1, whose members cannot be killed:", err)
	}
	write := func(file, text string) error {
		return os.WriteFile(filepath.Join(dir, file), []byte(text), 0)
	}
	thaw = func() {
		if err := write("freezer.state", "THAWED"); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		thaw()
		until(t, "the freezer to be empty", func() bool { return os.Remove(dir) == nil })
	})
	return func(pid int) error {
		if err := write("cgroup.procs", strconv.Itoa(pid)); err != nil {
			return err
		}
		if err := write("freezer.state", "FROZEN"); err != nil {
			return err
		}
		for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(time.Millisecond) {
			if b, _ := os.ReadFile(filepath.Join(dir, "freezer.state")); string(b) == "FROZEN\n" {
				return nil
			}
		}
		return errors.New("does not freeze")
	}, thaw
}

// SPEC 6.6, 6.11: processes that cannot be killed are reported, and the call returns all the
// same. When it can be killed after all, nothing is left.
func TestUnkillable(t *testing.T) {
	t.Parallel()
	needRoot(t)
	freeze, thaw := freezer(t)
	for _, c := range []procgroup.Containment{procgroup.Group, procgroup.Descendants, procgroup.Cgroup} {
		if c == procgroup.Cgroup {
			needCgroup(t)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cmd := command("busy")
		p, err := procgroup.Start(ctx, cmd, c)
		if err != nil {
			t.Fatal(err)
		}
		if err := freeze(cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
		cancel()
		r, err := p.Wait()
		if r.ExitCode != 130 || !errors.Is(err, timeout.ErrAborted) || r.State != nil {
			t.Errorf("%v: %+v, %v", c, r, err)
		}
		if len(r.Survivors) != 1 || r.Survivors[0] != cmd.Process.Pid {
			t.Errorf("%v: survivors %v, want %d", c, r.Survivors, cmd.Process.Pid)
		}
		thaw()
		until(t, "the end after the thaw", func() bool { return !alive(cmd.Process.Pid) })
	}
}

// The command does not die with the thread that spawned it.
func TestSpawningThreadEnds(t *testing.T) {
	t.Parallel()
	started := make(chan *procgroup.Process)
	go func() {
		runtime.LockOSThread() // and never unlocks, so the thread ends with the goroutine
		p, err := procgroup.Start(context.Background(), sleepCommand("0.3"))
		if err != nil {
			t.Error(err)
		}
		started <- p
	}()
	p := <-started
	if p == nil {
		return
	}
	r, err := p.Wait()
	check(t, r, err, want{})
}

// Zombies that nobody reaps count as dead. Of what belongs to a tree that is known by
// more than its group, none is left.
func TestNobodyReaps(t *testing.T) {
	t.Parallel()
	for containment, zombies := range map[string]bool{"group": true, "descendants": false} {
		rep := supervise(t, command("nonreap", containment))
		if late := len(rep.Survivors) > 0; rep.Code != 0 || len(undying(rep.Survivors)) > 0 || !late && (rep.Zombies > 0) != zombies { // on a busy machine what was killed may die late
			t.Errorf("%s: %+v", containment, rep)
		}
	}
}

// A host that ignores SIGCHLD has its children reaped by the kernel: the exit status is
// lost, and nothing else.
func TestHostIgnoresChildren(t *testing.T) {
	t.Parallel()
	cmd, pids := family(t, "ignorant")
	rep := supervise(t, cmd)
	if rep.Code != 1 || rep.State || len(undying(rep.Survivors)) > 0 {
		t.Errorf("%+v", rep)
	}
	for _, pid := range pids() {
		if alive(pid) {
			t.Errorf("process %d is alive", pid)
			killPid(pid)
		}
	}
}

// SPEC 6.10: without descriptors commands fail to start, or run; nothing leaks.
func TestNoDescriptorsLeft(t *testing.T) {
	t.Parallel()
	rep := supervise(t, command("starved"))
	if rep.Leaked != "" {
		t.Error(rep.Leaked)
	}
	if rep.Err == "" || rep.Code == 0 {
		t.Errorf("%d commands ran, the last error was %q: want both", rep.Code, rep.Err)
	}
}
