package procgroup_test

import (
	"context"
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/windows"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 5.1: the codes of commands that end by themselves.
func TestExitCodes(t *testing.T) {
	for _, code := range []string{"0", "7", "124", "3221225477"} { // the last is an access violation
		r, err := run(t, command("exit", code))
		check(t, r, err, want{code: atoi(code)})
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) != (code != "0") {
			t.Errorf("%s: %v", code, err)
		}
	}
}

// SPEC 6.1, 6.6, 6.7, cases 1 and 4: nothing of a tree lives on, not even a daemon whose
// parent is gone.
func TestTreeDies(t *testing.T) {
	for _, c := range []procgroup.Containment{"", procgroup.Job} {
		cmd, pids := family(t, "tree", "sleep")
		ctx, cancel := context.WithCancel(context.Background())
		p, err := procgroup.Start(ctx, cmd, procgroup.WithOptions(timeout.WithName("tool")), c)
		if err != nil {
			t.Fatal(err)
		}
		until(t, "the tree", func() bool { return len(pids()) == treeSize })
		cancel()
		r, err := p.Wait()
		check(t, r, err, want{code: 130, reason: procgroup.Aborted, message: aborted})
		mustBeDead(t, pids())
	}
}

// SPEC 6.5: a daemon that holds the streams does not hold up the call, and dies.
func TestDaemonHoldsThePipes(t *testing.T) {
	cmd, pids := family(t, "tree", "hold", "exit", "0")
	r, err := run(t, cmd)
	check(t, r, err, want{held: true})
	if r != nil && r.Stdout.String() != "ready\n" {
		t.Errorf("output %q", r.Stdout)
	}
	mustBeDead(t, pids())
}

// Orphans leaves a daemon alone, and what it holds does not hold up the call.
func TestOrphansMayStay(t *testing.T) {
	cmd, pids := family(t, "tree", "hold", "exit", "0")
	r, err := run(t, cmd, procgroup.Stop{Orphans: true})
	check(t, r, err, want{held: true})
	if l := living(pids()); len(l) != 2 {
		t.Errorf("of %v, %v live on, want the child and the daemon", pids(), l)
	}
}

// SPEC 6.6: when the supervisor is killed its tree dies.
func TestSupervisorIsKilled(t *testing.T) {
	cmd, pids := family(t, "run")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the tree", func() bool { return len(pids()) == treeSize+1 })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	until(t, "the tree to die", func() bool { return !slices.ContainsFunc(pids(), alive) })
}

// SPEC 6.10: a command that cannot be started is an error at once, and no handle is
// left.
func TestCannotBeStarted(t *testing.T) {
	dir := tempDir(t)
	before := handles(t)
	for range 50 {
		for _, tt := range []struct {
			path string
			code int
			is   error
		}{
			{"no-such-command-anywhere", 127, exec.ErrNotFound},
			{filepath.Join(dir, "missing.exe"), 127, fs.ErrNotExist},
		} {
			r, err := procgroup.Run(context.Background(), exec.Command(tt.path))
			if r != nil || timeout.ExitCode(err) != tt.code || !errors.Is(err, tt.is) {
				t.Fatalf("%s: %v, %v, code %d; want %d", tt.path, r, err, timeout.ExitCode(err), tt.code)
			}
		}
	}
	if after := handles(t); after > before+20 {
		t.Errorf("%d handles, %d before", after, before)
	}
}

// Guarantee 9: no handle is left of a command. A process can be opened by its id for as
// long as there is a handle of it.
func TestNoHandleIsLeft(t *testing.T) {
	run := func(n int) {
		for i := range n {
			cmd := command("exit", "0")
			var opts []procgroup.Option
			if i%2 == 0 {
				opts = append(opts, procgroup.Stop{Orphans: true})
			}
			r, err := run(t, cmd, opts...)
			check(t, r, err, want{})
			until(t, "the process to be gone for good", func() bool {
				h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(cmd.Process.Pid))
				_ = windows.CloseHandle(h)
				return err != nil
			})
		}
	}
	run(2) // what is opened once and for all
	before := handles(t)
	run(6)
	if after := handles(t); after > before+10 {
		t.Errorf("%d handles, %d before", after, before)
	}
}

// handles is how many this process has open; Wine 8 does not count them.
func handles(t *testing.T) (n int) {
	t.Helper()
	var count uint32
	proc := windows.NewLazySystemDLL("kernel32.dll").NewProc("GetProcessHandleCount")
	if ok, _, err := proc.Call(uintptr(windows.CurrentProcess()), ptr(&count)); ok == 0 {
		t.Skip("GetProcessHandleCount:", err)
	}
	return int(count)
}

// A containment that is missing is an error that says so; the leader alone is to be had.
func TestContainments(t *testing.T) {
	for _, c := range []procgroup.Containment{procgroup.Group, procgroup.Descendants, procgroup.Cgroup, procgroup.Helper} {
		if _, err := procgroup.Run(context.Background(), command("exit", "0"), c); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%v: %v", c, err)
		}
	}
	r, err := procgroup.Run(context.Background(), command("sleep"), procgroup.Containment("leader"),
		procgroup.Limits{Total: time.Second}, procgroup.Stop{Grace: -1})
	if r == nil || r.Contained != "leader" || r.ExitCode != 124 || len(r.Survivors) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// The caller's attributes are kept, and not changed.
func TestAttributes(t *testing.T) {
	cmd := command("exit", "4")
	attr := &syscall.SysProcAttr{CreationFlags: windows.CREATE_NO_WINDOW}
	cmd.SysProcAttr = attr
	r, err := run(t, cmd)
	check(t, r, err, want{code: 4})
	if cmd.SysProcAttr != attr || attr.CreationFlags != windows.CREATE_NO_WINDOW || cmd.Stdout != nil {
		t.Error("the command was changed")
	}
}
