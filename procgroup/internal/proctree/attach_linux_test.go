package proctree

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// SPEC 6.6: what ignores the stop signal is killed after the grace, even if os/exec has reaped the leader.
func TestAttachAfterTheLeader(t *testing.T) {
	const deaf = `deaf() { trap "" TERM; echo; while :; do sleep 0.05; done; }; `
	for name, tt := range map[string]struct {
		kind   Kind
		script string
	}{
		"group":                       {Group, `deaf & wait`},
		"a member without its cookie": {Auto, `env -i PATH="$PATH" sh -c '` + deaf + `deaf' & wait`},
		"a member that begins later":  {Group, `(trap 'sleep 0.05; deaf & sleep 0.1; exit' TERM; echo; while :; do sleep 0.05; done) & wait`},
		// A process outside the group starts and reaps them, until one is killed.
		"each member lives for a few milliseconds": {Group, `perl -e '$| = 1; my ($group, @all) = getpgrp; setpgrp;
			for (;; select undef, undef, undef, .002) {
				push @all, my $pid = fork;
				if (!$pid) { $SIG{TERM} = "IGNORE"; setpgrp 0, $group or exit 1; print "\n"; select undef, undef, undef, .006; exit }
				if (@all > 3) { waitpid shift @all, 0; exit if $? }
			}' & wait`},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			cmd := exec.CommandContext(ctx, "sh", "-c", deaf+tt.script)
			cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true} // a process can join only a group of its session
			grace, err := Attach(cmd, tt.kind, unix.SIGTERM, 500*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			out, in, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			cmd.Stdout = in
			err = cmd.Start()
			in.Close()
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // only what the library has left
			_, _ = out.Read(make([]byte, 1))
			begun := time.Now()
			cancel()
			_ = cmd.Wait()
			_ = out.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := io.Copy(io.Discard, out); err != nil {
				t.Fatalf("a member is alive: %v", err)
			}
			if d := time.Since(begun); d < grace {
				t.Errorf("the last member was killed after %v", d)
			}
		})
	}
}

// SPEC 6.6: a later group with the same id is another's, and is not killed.
func TestAttachSparesAnotherGroup(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to choose the next process id")
	}
	start := func() *exec.Cmd {
		cmd := exec.Command("sleep", "120")
		cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	for range 20 {
		cmd := start()
		pid := cmd.Process.Pid
		pin, err := pinGroup(pid)
		_, _ = cmd.Process.Kill(), cmd.Wait()
		if err != nil {
			t.Fatal(err)
		}
		_ = os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0)
		bystander := start()
		(&attached{pid: pid, pin: pin}).finish(time.Now())
		_ = bystander.Process.Signal(unix.SIGTERM)
		if state, err := bystander.Process.Wait(); err != nil || state.String() != "signal: terminated" {
			t.Errorf("a bystander was killed: %v, %v", state, err)
		}
		if bystander.Process.Pid == pid {
			return
		}
	}
	t.Skip("the id was never given out again: other processes were faster")
}
