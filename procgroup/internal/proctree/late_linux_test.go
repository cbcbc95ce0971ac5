package proctree

import (
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"golang.org/x/sys/unix"
)

// SPEC 6.6, 6.11: a process that does not show its environment in time holds up no look, and is not taken for a
// member, nor for none.
func TestLateEnvironment(t *testing.T) {
	cmd := exec.Command("sleep", "120")
	cookie := setCookie(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	pids := []int{cmd.Process.Pid}
	d := &descendants{leader: &leader{pid: -1}, cookie: cookie, reaped: true}

	var all []proc
	var complete, short bool
	for until := time.Now().Add(time.Minute); !complete && time.Now().Before(until); { // in the middle of an exec it shows none
		all, complete, short = environs(procfs.NewPatience(time.Minute), pids, 0, always)
		complete = complete && !all[0].blank
	}
	if found, unsure := d.among(all); !complete || short || len(found) != 1 || len(unsure) > 0 {
		t.Errorf("in time: complete %v, short %v, members %v, unsure %v", complete, short, found, unsure)
	}

	var first atomic.Bool
	stuck := make(chan struct{})
	defer close(stuck)
	begun := time.Now()
	all, complete, short = environs(procfs.NewPatience(20*time.Millisecond), pids, 0, func() bool {
		if !first.Swap(true) {
			<-stuck
		}
		return true
	})
	if found, unsure := d.among(all); complete || short || len(found) > 0 || len(unsure) != 1 || time.Since(begun) > 30*time.Second {
		t.Errorf("late: complete %v, short %v, members %v, unsure %v, after %v", complete, short, found, unsure, time.Since(begun))
	}
	// It began before the command, and so it is none of its.
	first.Store(false)
	all, complete, _ = environs(procfs.NewPatience(20*time.Millisecond), pids, ^uint64(0), func() bool {
		if !first.Swap(true) {
			<-stuck
		}
		return true
	})
	if found, unsure := d.among(all); !complete || len(found)+len(unsure) > 0 {
		t.Errorf("late, and old: complete %v, members %v, unsure %v", complete, found, unsure)
	}
}

// SPEC 6.6: a signal reaches a member that shows its environment only at the second look, and each member once.
func TestLateMemberIsSignalled(t *testing.T) {
	looks := 0
	var signalled []*exec.Cmd
	d := &descendants{leader: &leader{pid: -1}}
	var members []proc
	for range 2 {
		cmd := exec.Command("sh", "-c", `n=0; trap 'n=$((n+1))' USR1; trap 'exit $n' TERM; echo; while :; do sleep .01; done`)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cmd.Process.Kill() }()
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		p, ok := procfs.Unhurried().Process(cmd.Process.Pid)
		if !ok {
			t.Fatal("not there")
		}
		members, signalled = append(members, proc{Process: p}), append(signalled, cmd)
	}
	look := func() (found, unsure []proc, ok bool) {
		if looks++; looks == 1 {
			late := members[1]
			late.late = true
			return members[:1], []proc{late}, true
		}
		return members, nil, true
	}
	if any := d.signalEach(look, unix.SIGUSR1); !any || looks != 2 {
		t.Errorf("signalled: %v, after %d looks", any, looks)
	}
	for _, cmd := range signalled {
		_ = cmd.Process.Signal(unix.SIGTERM)
		_ = cmd.Wait()
		if n := cmd.ProcessState.ExitCode(); n != 1 {
			t.Errorf("%d signals", n)
		}
	}
}
