package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// TestDeathSignalKept: the signal for our death is that of the thread which has started the
// command, and must not come when a thread ends that called start.
func TestDeathSignalKept(t *testing.T) {
	var c *command
	for ended := false; !ended; {
		started := make(chan int)
		go func() {
			runtime.LockOSThread() // so that the thread ends with the goroutine
			var errs <-chan error
			c, errs = start([]string{"sleep", "60"}, nil, []*os.File{nil, nil, nil}, syscall.SIGTERM)
			if err := <-errs; err != nil {
				t.Error(err)
			}
			started <- syscall.Gettid()
		}()
		thread := <-started
		if c.process == nil {
			return
		}
		if ended = thread != os.Getpid(); !ended { // the main thread does not end
			c.signal(syscall.SIGKILL)
			<-c.ended
			continue
		}
		task := fmt.Sprintf("/proc/self/task/%d", thread)
		for _, err := os.Stat(task); err == nil; _, err = os.Stat(task) {
			time.Sleep(10 * time.Millisecond)
		}
	}
	select {
	case <-c.ended:
		t.Errorf("the command ended: %v", c.state)
	case <-time.After(300 * time.Millisecond):
	}
	c.signal(syscall.SIGKILL)
	<-c.ended
	if got := c.state.String(); got != "signal: killed" {
		t.Error(got)
	}
}

// TestProcessOne: signals do not end process 1, which therefore ends with the code that a
// shell makes of one, and at once.
func TestProcessOne(t *testing.T) {
	t.Parallel()
	bin, fastest := ours(t), veryLong
	for try := 0; try < 20 && fastest >= time.Second/2; try++ {
		cmd, _ := prepare(t, bin, "exec deadline 60 sh -c 'echo ends; kill -TERM $$'")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
		if os.Getuid() != 0 {
			cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		}
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		err = cmd.Start()
		if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
			t.Skipf("no namespace of processes: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadFull(stdout, make([]byte, 5)) // on a busy machine the start alone takes seconds
		begun := time.Now()
		err = cmd.Wait()
		fastest = min(fastest, time.Since(begun))
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 128+int(syscall.SIGTERM) {
			t.Errorf("%v, want exit status 143", err)
		}
	}
	if fastest >= time.Second/2 {
		t.Errorf("at best it took %v", fastest)
	}
}
