package procgroup_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// mountHungFS mounts a file system over dir that answers no question about what is below it, as an NFS server that is
// away, or skips the test: one for automount, without the daemon that would mount something. asked is closed at the first
// question. At the end of the test the file system is gone, and whatever waits for it goes on.
func mountHungFS(t *testing.T, dir string) (asked chan struct{}) {
	t.Helper()
	needRoot(t)
	var pipe [2]int // at which a daemon is asked
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[1])
	daemon := exec.Command("true") // the process group that would not have to wait
	daemon.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	options := fmt.Sprintf("fd=%d,pgrp=%d,minproto=5,maxproto=5,indirect", pipe[1], daemon.Process.Pid)
	err := unix.Mount("test", dir, "autofs", 0, options)
	_ = daemon.Wait()
	questions := os.NewFile(uintptr(pipe[0]), "questions")
	if err != nil {
		questions.Close()
		t.Skip("an automount point cannot be made:", err)
	}
	root, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		const giveUp = 0x9362 // AUTOFS_IOC_CATATONIC
		if err := unix.IoctlSetInt(int(root.Fd()), giveUp, 0); err != nil {
			t.Error(err)
		}
		root.Close()
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	asked = make(chan struct{})
	go func() {
		defer questions.Close()
		if _, err := questions.Read(make([]byte, 1)); err == nil {
			close(asked)
		}
	}()
	return asked
}
