package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"golang.org/x/sys/unix"
)

// A Group is a control group of version 2 for one command, below that of this process.
type Group struct {
	own         string // the control group of this process
	parent, dir string
	fd          int
	proven      bool // a process was started in such a group before
	killer      int  // cgroup.kill, open: when it is needed there may be no descriptor left
	leader      int  // process id; 0 until it is started
	adopting    bool // what was killed in it were children of this process, too, not just the leader
	total       Total
}

// prefix begins the names of the directories.
const prefix = "tooldeadline-"

var lastNumber atomic.Uint64

// New makes a control group, below that of this process. The error says why there can be no such group.
func New() (*Group, error) {
	own, err := ownPath()
	if err != nil {
		return nil, err
	}
	h := &home
	h.Lock()
	if h.unusable == own && time.Now().Before(h.retry) {
		defer h.Unlock()
		return nil, h.reason
	}
	if h.mount == "" {
		h.mount, h.root, err = mountPoint()
	}
	mount, root := h.mount, h.root
	h.Unlock()
	if err != nil {
		return nil, fail(own, err)
	}
	rel, ok := strings.CutPrefix(own, root)
	if !ok {
		return nil, fail(own, errors.New("this process is outside the mounted part of the cgroup hierarchy"))
	}
	parent := filepath.Join(mount, rel)
	c, err := makeGroup(parent)
	if err != nil {
		return nil, fail(own, err)
	}
	h.Lock()
	c.own, c.proven = own, h.usable == own
	h.Unlock()
	if !c.proven {
		removeLeftovers(parent)
	}
	return c, nil
}

// makeGroup makes a directory that nobody else uses, and locks it for as long as this process lives: a host that
// looks for leftovers of others, in any process id namespace, takes only directories that are not locked.
func makeGroup(parent string) (*Group, error) {
	for tries := 0; ; {
		c := &Group{parent: parent}
		c.dir = filepath.Join(parent, prefix+strconv.Itoa(os.Getpid())+"-"+strconv.FormatUint(lastNumber.Add(1), 10))
		err := unix.Mkdir(c.dir, 0o755)
		if err == unix.EEXIST { // made by another process with this id: one that was killed, or is in another namespace
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "mkdir", Path: c.dir, Err: err}
		}
		if err = c.open(); err == nil {
			return c, nil
		}
		_ = unix.Rmdir(c.dir)
		// In the moment before it was locked, another host may have taken it for a leftover.
		if tries++; tries == maxTaken || !(errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EWOULDBLOCK)) {
			return nil, err
		}
	}
}

// maxTaken is how many directories in a row may be taken away before they are locked.
const maxTaken = 3

// open opens and locks the directory. After the lock, only this process removes it.
func (c *Group) open() (err error) {
	if c.fd, err = unix.Open(c.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return &os.PathError{Op: "open", Path: c.dir, Err: err}
	}
	if err = unix.Flock(c.fd, unix.LOCK_SH|unix.LOCK_NB); err != nil {
		err = &os.PathError{Op: "flock", Path: c.dir, Err: err}
	} else if c.killer, err = unix.Openat(c.fd, "cgroup.kill", unix.O_WRONLY|unix.O_CLOEXEC, 0); err != nil {
		err = &os.PathError{Op: "open", Path: c.dir + "/cgroup.kill", Err: err}
	}
	if err != nil {
		unix.Close(c.fd)
	}
	return err
}

// Start starts cmd in c. If no process can be started in c, Start discards c, remembers that for a
// while, and returns the reason as broken; cmd is then unchanged, and can be started without c.
//
// Nothing else is started to find that out beforehand, because the host would get a SIGCHLD
// that is of no command. The exception is a first command with an input: that may be an
// exec.Cmd.StdinPipe, which os/exec closes where a start fails.
func (c *Group) Start(cmd *exec.Cmd) (broken, err error) {
	if !c.proven && cmd.Stdin != nil {
		if broken := c.probe(); broken != nil {
			return c.giveUp(broken), nil
		}
	}
	unstarted := *cmd // os/exec starts a Cmd only once
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, c.fd
	if err = cmd.Start(); err == nil {
		c.leader = cmd.Process.Pid
		c.prove()
		return nil, nil
	}
	// Is it the command, or c?
	if failed := (*os.PathError)(nil); errors.As(err, &failed) && failed.Err != unix.ENOENT {
		broken = c.probe()
	}
	if broken == nil {
		c.Discard()
		return nil, err
	}
	broken = c.giveUp(broken)
	if cmd.Stdin != nil {
		return nil, err // the next command will do without; this one may have lost its input
	}
	*cmd = unstarted
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = false, 0
	return broken, nil
}

// prove remembers that a process was started in c.
func (c *Group) prove() {
	h := &home
	h.Lock()
	defer h.Unlock()
	h.usable = c.own
}

// giveUp discards c and remembers why.
func (c *Group) giveUp(broken error) error {
	c.Discard()
	return fail(c.own, broken)
}

// probe finds out whether the system starts processes in c, by starting a program that does not exist: if that is
// the only complaint, the system does.
func (c *Group) probe() error {
	_, err := syscall.ForkExec(c.dir+"/none", []string{"none"}, &syscall.ProcAttr{
		Sys: &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: c.fd},
	})
	if err == syscall.ENOENT {
		return nil
	}
	return fmt.Errorf("no process can be started in %s: %w", c.dir, err)
}

// Discard removes c, in which nothing was started.
func (c *Group) Discard() {
	c.Close()
	_ = unix.Rmdir(c.dir)
}

// Kill kills everything in c and below.
func (c *Group) Kill() {
	c.adopting = c.adopting || c.hasAdopted()
	_, _ = unix.Write(c.killer, []byte("1"))
}

// Populated reports whether there is anything alive in c or below. A zombie is not alive.
func (c *Group) Populated() bool {
	var buf [128]byte
	fd, err := unix.Openat(c.fd, "cgroup.events", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err != unix.ENOENT // a group that is removed has no file
	}
	defer unix.Close(fd)
	n, _ := unix.Read(fd, buf[:])
	return bytes.Contains(buf[:max(n, 0)], []byte("populated 1"))
}

// Each calls fn for the processes in c and below. It reports whether it has seen all groups but those that are removed
// meanwhile, have threads and not processes, or may not be read.
func (c *Group) Each(fn func(pid int)) (complete bool) {
	const file = "cgroup.procs"
	complete = true
	failed := func(err error) {
		var no syscall.Errno
		if errors.As(err, &no) && !slices.Contains([]syscall.Errno{unix.ENOENT, unix.ENODEV, unix.EOPNOTSUPP, unix.EACCES, unix.EPERM}, no) {
			complete = false
		}
	}
	in := func(path string) {
		b, err := os.ReadFile(path)
		failed(err)
		for line := range bytes.Lines(b) {
			if pid := int(procfs.Uint(bytes.TrimSpace(line))); pid > 0 {
				fn(pid)
			}
		}
	}
	var st unix.Stat_t
	if unix.Fstat(c.fd, &st) == nil && st.Nlink == 2 { // no groups below; a directory has dozens of files
		in(filepath.Join(c.dir, file))
		return complete
	}
	_ = filepath.WalkDir(c.dir, func(path string, d os.DirEntry, err error) error {
		if failed(err); err == nil && d.Name() == file {
			in(path)
		}
		return nil
	})
	return complete
}

func (c *Group) PIDs() (all []int) {
	c.Each(func(pid int) { all = append(all, pid) })
	return all
}

// killEach kills one by one the processes that kill has left: the kernel passes over a process whose main thread has
// ended while another thread runs on.
func (c *Group) killEach() { c.Signal(0, unix.SIGKILL) }

// Signal signals everything in c that is not in the process group.
func (c *Group) Signal(group int, sigs ...unix.Signal) {
	c.Each(func(pid int) {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return
		}
		defer unix.Close(fd)
		// This must follow the opening of the descriptor: if the process is in c now, the descriptor is its own.
		if !c.contains(pid) {
			return
		}
		if p := procfs.StatusOf(pid); p.There && p.Group == group || !p.There && p.Known {
			return
		}
		for _, sig := range sigs {
			_ = unix.PidfdSendSignal(fd, sig, nil, 0)
		}
	})
}

// Remove kills everything in c and removes c. It reports whether that was possible before the deadline.
func (c *Group) Remove(deadline time.Time) bool {
	for b, round := patient.Backoff(0), 0; ; round++ {
		c.count()
		// Usually it is empty by now, and then this is all.
		switch err := unix.Rmdir(c.dir); err {
		case nil, unix.ENOENT:
			return true
		}
		if round%8 == 0 {
			c.Kill()
		}
		if round%8 == 4 { // what has not gone by now may be what the kernel passes over
			c.killEach()
		}
		if !c.Populated() {
			removeBelow(c.dir)
		}
		if !b.Sleep(deadline) {
			return unix.Rmdir(c.dir) == nil
		}
	}
}

// Release moves everything in c to the cgroup of this process and removes c. It reports whether that was possible
// before the deadline.
func (c *Group) Release(deadline time.Time) bool {
	to := filepath.Join(c.parent, "cgroup.procs")
	c.count() // what is moved is counted elsewhere from here on
	for b := patient.Backoff(0); ; {
		c.Each(func(pid int) {
			_ = os.WriteFile(to, strconv.AppendInt(nil, int64(pid), 10), 0)
		})
		if !c.Populated() {
			removeBelow(c.dir)
		}
		if err := unix.Rmdir(c.dir); err == nil || err == unix.ENOENT {
			return true
		}
		if !b.Sleep(deadline) {
			return false
		}
	}
}

func (c *Group) Close() {
	unix.Close(c.killer)
	unix.Close(c.fd)
}

// Open opens a group that exists, to read what it counts. Nothing can be started or killed in it.
func Open(dir string) (*Group, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return &Group{dir: dir, fd: fd, killer: -1}, err
}

// Total returns what everything that is or was in c and below has used, once c is removed or released.
func (c *Group) Total() Total { return c.total }
