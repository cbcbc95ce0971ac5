//go:build linux

package procgroup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 6.6: nothing is left alive, even processes that the system shows in an unusual way.

func init() {
	modes["headless"] = headless
	modes["parentOfHeadless"] = parentOfHeadless
	modes["sibling"] = sibling
	hosts["subgroups"] = runModeSubgroups
}

// headless goes on without its main thread: it shows as a zombie, and is alive.
func headless([]string) int {
	go func() {
		for !threadGone() {
			time.Sleep(time.Millisecond)
		}
		fmt.Println("ready")
		time.Sleep(forever)
		os.Exit(0)
	}()
	// modes run on the main goroutine, which initLocked has tied to the main thread.
	_, _, _ = syscall.Syscall(unix.SYS_EXIT, 0, 0, 0)
	return 0
}

func threadGone() bool {
	b, _ := os.ReadFile("/proc/self/stat")
	return strings.Contains(string(b), ") Z ")
}

func init() {
	if mode := os.Getenv(modeEnv); mode == "headless" {
		runtime.LockOSThread()
	}
}

// parentOfHeadless ends when its child has lost its main thread, in a group of its own.
func parentOfHeadless(a []string) int {
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	child([]*os.File{nil, w, os.Stderr}, a[0] == "setsid", "headless")
	w.Close()
	var b [6]byte
	_, _ = r.Read(b[:])
	fmt.Println("ready")
	time.Sleep(duration(a[1]))
	return 0
}

// A process whose main thread has ended while another runs on is killed like any other,
// wherever it is (SPEC 6.6).
func TestProcessWithoutMainThread(t *testing.T) {
	eachContainment(t, func(t *testing.T, containment procgroup.Option) {
		for _, where := range []string{"group", "setsid"} {
			t.Run(where, func(t *testing.T) {
				cmd, pids := family(t, "parentOfHeadless", where, "0s")
				r, err := procgroup.Run(context.Background(), cmd, containment)
				if err != nil || r.ExitCode != 0 || len(undying(r.Survivors))+len(r.Unidentified) > 0 {
					t.Errorf("error %v, survivors %v, unidentified %v", err, r.Survivors, r.Unidentified)
				}
				if n := len(pids()); n != 2 {
					t.Errorf("%d processes, want 2", n)
				}
				for _, pid := range pids() {
					if slices.Contains(r.Survivors, pid) { // killed, and not dead in time
						until(t, "its end", func() bool { return threadsOf(pid) <= 1 })
					}
					if _, err := os.Stat(fmt.Sprintf("/proc/%d/task", pid)); err == nil && threadsOf(pid) > 1 {
						t.Errorf("process %d is alive", pid)
						_ = unix.Kill(pid, unix.SIGKILL)
					}
				}
			})
		}
	})
}

func threadsOf(pid int) int {
	list, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	return len(list)
}

// sibling starts a child that becomes its parent's, as clone with CLONE_PARENT makes it,
// and ends after it, or before. If that is "asked", both end when they are asked to.
func sibling(a []string) int {
	cmd := command("exit", "0")
	switch a[1] {
	case "live":
		cmd = command("deaf")
	case "asked":
		cmd = command("handler", "0", "0s")
		cmd.Stdout = os.Stdout // says that it is ready
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_PARENT, Setsid: a[0] == "setsid"}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	for a[1] == "live" && len(signatures(os.Getenv(pidsEnv))) < 2 {
		time.Sleep(time.Millisecond)
	}
	if a[1] == "asked" {
		time.Sleep(forever)
	}
	// A zombie can be reaped once its other threads, if it had any, have ended, too.
	for begun := time.Now(); a[1] == "ended" && time.Since(begun) < time.Minute; time.Sleep(time.Millisecond) {
		if !alive(cmd.Process.Pid) && threadsOf(cmd.Process.Pid) <= 1 {
			break
		}
	}
	return 0
}

// A process that a command makes a child of the host is reaped, and no other child of the host is.
func TestChildOfTheHost(t *testing.T) {
	bystander := exec.Command("true")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	for _, containment := range []procgroup.Containment{procgroup.Descendants, procgroup.Cgroup} {
		t.Run(string(containment), func(t *testing.T) {
			if containment == procgroup.Cgroup {
				needCgroup(t)
			}
			for _, where := range []string{"group", "setsid"} {
				for _, state := range []string{"live", "ended", "asked"} {
					t.Run(where+" "+state, func(t *testing.T) { childOfTheHost(t, containment, where, state) })
				}
			}
		})
	}
	if err := bystander.Wait(); err != nil {
		t.Errorf("a command of somebody else's: %v", err)
	}
}

func childOfTheHost(t *testing.T, containment procgroup.Containment, where, state string) {
	var pids func() []int
	var r *procgroup.Result
	var err error
	for left := 4; ; left-- {
		var cmd *exec.Cmd
		cmd, pids = family(t, "sibling", where, state)
		if state == "asked" {
			var said atomic.Bool
			r, err = stopWhen(t, said.Load, cmd, containment, procgroup.Stop{AbortDelay: longLimit},
				procgroup.Capture{Each: func(procgroup.Chunk) { said.Store(true) }})
			if errors.Is(err, timeout.ErrAborted) {
				err = nil
			}
		} else {
			r, err = procgroup.Run(context.Background(), cmd, containment)
		}
		if left == 0 || len(r.Survivors) == 0 {
			break
		}
		for _, pid := range undying(r.Survivors) { // on a busy machine what was killed is reaped by nobody, if it dies late
			t.Errorf("process %d survives", pid)
		}
		for _, pid := range pids() {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
	if err != nil || len(undying(r.Survivors)) > 0 || r.Escalated {
		t.Errorf("error %v, survivors %v, escalated %v", err, r.Survivors, r.Escalated)
	}
	// One that was killed before it has left its id is found by the suite, in the end.
	if n := len(pids()); n != 2 && state != "ended" {
		t.Errorf("%d processes, want 2", n)
	}
	for _, pid := range pids() {
		if _, err := os.Stat("/proc/" + strconv.Itoa(pid)); err == nil {
			// Of a zombie in another session that was never seen alive, only a control group knows
			// that it is not a child that the host has made itself.
			if containment != procgroup.Descendants || where+state != "setsidended" {
				t.Errorf("process %d is still there", pid)
			}
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// runModeSubgroups is a host whose command makes control groups below its own, and stays.
func runModeSubgroups([]string) int {
	cmd := exec.Command("sh", "-c", `
		g=/sys/fs/cgroup; [ -d $g/unified ] && g=$g/unified
		g=$g$(sed -n 's/^0:://p' /proc/self/cgroup)
		mkdir -p $g/a/b && echo ready && exec sleep 120`)
	_, err := procgroup.Run(context.Background(), cmd, procgroup.Cgroup,
		procgroup.Capture{Each: func(c procgroup.Chunk) { os.Stdout.Write(c.Data) }})
	fmt.Println(err)
	return 0
}

// The control group of a host that was killed is removed with all that is below it, once it
// is empty, by the first command of the next host; one whose host lives is left alone.
func TestLeftoverSubgroups(t *testing.T) {
	needCgroup(t)
	host := command("subgroups")
	harness.Start(t, host, "ready\n")
	if got := cgroupDirs(host.Process.Pid); len(got) != 1 {
		t.Fatalf("control groups %v, want one", got)
	}
	nextHost := func() {
		t.Helper()
		next := command("run", "auto", "exit", "0")
		if out, err := next.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	nextHost()
	left := cgroupDirs(host.Process.Pid)
	if len(left) != 1 {
		t.Fatalf("control groups %v of a host that lives, want one", left)
	}
	for _, pid := range procsBelow(left[0]) {
		defer func() { _ = unix.Kill(pid, unix.SIGKILL) }()
	}
	_ = host.Process.Kill()
	_ = host.Wait()
	for _, pid := range procsBelow(left[0]) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	until(t, "the control group to be empty", func() bool { return len(procsBelow(left[0])) == 0 })
	nextHost()
	if got := cgroupDirs(host.Process.Pid); len(got) > 0 {
		t.Errorf("left behind: %v", got)
	}
}

func procsBelow(dir string) (pids []int) {
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == "cgroup.procs" {
			b, _ := os.ReadFile(path)
			for _, word := range strings.Fields(string(b)) {
				pid, _ := strconv.Atoi(word)
				pids = append(pids, pid)
			}
		}
		return nil
	})
	return pids
}
