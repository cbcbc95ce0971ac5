package proctree

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A cgroup is a control group of version 2 for one command, below that of this process.
type cgroup struct {
	parent, dir string
	fd          int
	killer      int // cgroup.kill, open: when it is needed there may be no descriptor left
}

// cgroupPrefix begins the names of the directories.
const cgroupPrefix = "tooldeadline-"

var cgroupNumber atomic.Uint64

// newCgroup makes a cgroup, or says why not.
func newCgroup() (*cgroup, error) {
	own, err := ownCgroup()
	if err != nil {
		return nil, err
	}
	h := &cgroupHome
	h.Lock()
	if h.bad == own && time.Now().Before(h.retry) {
		defer h.Unlock()
		return nil, h.reason
	}
	if h.mount == "" {
		h.mount, h.root, err = cgroupMount()
	}
	mount, root := h.mount, h.root
	h.Unlock()
	if err != nil {
		return nil, cgroupsFail(own, err)
	}
	rel, ok := strings.CutPrefix(own, root)
	if !ok {
		return nil, cgroupsFail(own, errors.New("this process is outside the mounted part of the cgroup hierarchy"))
	}
	parent := filepath.Join(mount, rel)
	c := &cgroup{parent: parent}
	for {
		c.dir = filepath.Join(parent, cgroupPrefix+strconv.Itoa(os.Getpid())+"-"+strconv.FormatUint(cgroupNumber.Add(1), 10))
		err := unix.Mkdir(c.dir, 0o755)
		if err == nil {
			break
		}
		if err != unix.EEXIST { // that is of another process with this id: killed before, or in another namespace
			return nil, cgroupsFail(own, &os.PathError{Op: "mkdir", Path: c.dir, Err: err})
		}
	}
	if c.fd, err = unix.Open(c.dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		_ = unix.Rmdir(c.dir)
		return nil, &os.PathError{Op: "open", Path: c.dir, Err: err}
	}
	if c.killer, err = unix.Openat(c.fd, "cgroup.kill", unix.O_WRONLY|unix.O_CLOEXEC, 0); err != nil {
		unix.Close(c.fd)
		_ = unix.Rmdir(c.dir)
		return nil, cgroupsFail(own, &os.PathError{Op: "open", Path: c.dir + "/cgroup.kill", Err: err})
	}
	h.Lock()
	known := h.good == own
	h.Unlock()
	if !known {
		removeLeftovers(parent)
		if err := c.probe(); err != nil {
			c.discard()
			return nil, cgroupsFail(own, err)
		}
		h.Lock()
		h.good = own
		h.Unlock()
	}
	return c, nil
}

// probe finds out whether the system starts processes in c, by starting a program that
// does not exist: where that is the only complaint, it does. Otherwise a failure to start
// a command could not be told from a failure to use c.
func (c *cgroup) probe() error {
	_, err := syscall.ForkExec(c.dir+"/none", []string{"none"}, &syscall.ProcAttr{
		Sys: &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: c.fd},
	})
	if err == syscall.ENOENT {
		return nil
	}
	return fmt.Errorf("no process can be started in %s: %w", c.dir, err)
}

// discard removes a cgroup in which nothing was started.
func (c *cgroup) discard() {
	c.close()
	_ = unix.Rmdir(c.dir)
}

// kill kills everything in c and below.
func (c *cgroup) kill() { _, _ = unix.Write(c.killer, []byte("1")) }

// populated reports whether there is anything alive in c or below. Zombies are not.
func (c *cgroup) populated() bool {
	var buf [128]byte
	fd, err := unix.Openat(c.fd, "cgroup.events", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err != unix.ENOENT // which is removed
	}
	defer unix.Close(fd)
	n, _ := unix.Read(fd, buf[:])
	return bytes.Contains(buf[:max(n, 0)], []byte("populated 1"))
}

// each calls fn for the processes in c and below.
func (c *cgroup) each(fn func(pid int)) {
	_ = filepath.WalkDir(c.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Name() != "cgroup.procs" {
			return nil
		}
		b, _ := os.ReadFile(path)
		for line := range bytes.Lines(b) {
			if pid := int(number(bytes.TrimSpace(line))); pid > 0 {
				fn(pid)
			}
		}
		return nil
	})
}

func (c *cgroup) pids() (all []int) {
	c.each(func(pid int) { all = append(all, pid) })
	return all
}

// signal signals everything in c that is not in the process group.
func (c *cgroup) signal(group int, sigs ...unix.Signal) {
	var r procReader
	name := "/" + filepath.Base(c.dir)
	c.each(func(pid int) {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return
		}
		defer unix.Close(fd)
		// Looked at after the descriptor was opened: it must still be in c.
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
		if err != nil || !(bytes.Contains(b, []byte(name+"/")) || bytes.Contains(b, []byte(name+"\n"))) {
			return // 1 is not 10
		}
		if p, ok := r.get(pid, ^uint64(0)); !ok || p.pgrp == group {
			return
		}
		for _, sig := range sigs {
			_ = unix.PidfdSendSignal(fd, sig, nil, 0)
		}
	})
}

// remove kills what is in c, removes it and reports whether that was possible before
// the deadline.
func (c *cgroup) remove(deadline time.Time) bool {
	for b, round := backoff(0), 0; ; round++ {
		// Usually it is empty by now, and then this is all.
		switch err := unix.Rmdir(c.dir); err {
		case nil, unix.ENOENT:
			return true
		}
		if round%8 == 0 {
			c.kill()
		}
		if !c.populated() {
			c.removeBelow()
		}
		if !b.sleep(deadline) {
			return unix.Rmdir(c.dir) == nil
		}
	}
}

// removeBelow removes the cgroups that the command has made, from the leaves.
func (c *cgroup) removeBelow() {
	var dirs []string
	_ = filepath.WalkDir(c.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != c.dir {
			dirs = append(dirs, path)
		}
		return nil
	})
	for i := len(dirs) - 1; i >= 0; i-- {
		_ = unix.Rmdir(dirs[i])
	}
}

// release moves what is in c to the cgroup of this process, removes c, and reports
// whether that was possible before the deadline.
func (c *cgroup) release(deadline time.Time) bool {
	to := filepath.Join(c.parent, "cgroup.procs")
	for b := backoff(0); ; {
		c.each(func(pid int) {
			_ = os.WriteFile(to, strconv.AppendInt(nil, int64(pid), 10), 0)
		})
		if !c.populated() {
			c.removeBelow()
		}
		if err := unix.Rmdir(c.dir); err == nil || err == unix.ENOENT {
			return true
		}
		if !b.sleep(deadline) {
			return false
		}
	}
}

func (c *cgroup) close() {
	unix.Close(c.killer)
	unix.Close(c.fd)
}
