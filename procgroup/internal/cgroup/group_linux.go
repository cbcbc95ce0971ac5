package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// A Group is a control group of version 2 for one command. Its directory is below that of the control group of this
// process or, with limits, possibly below that of the enclosing one.
type Group struct {
	own         string // the control group below which c is, as a path in the hierarchy
	parent, dir string // the directories of the control group of this process, and of c
	fd          int    // of dir
	proven      bool   // a process was started in a Group below own before
	killer      int    // descriptor of cgroup.kill, opened early: at the time of the kill there may be no descriptor left
	leader      int    // id of the process that Start has started, or 0
	adopting    bool   // Kill has found a child of this process in c other than the leader
	total       Total  // as of the last call of count
}

var lastNumber atomic.Uint64

// New creates a control group below that of this process. The error says why there can be no such group. For retryAfter
// later calls return the same error, unless its cause is temporary.
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

// makeGroup creates a control group in parent under a new name, and locks its directory until Close. The lock keeps
// removeLeftovers of other processes, in any process id namespace, from removing it.
func makeGroup(parent string) (*Group, error) {
	for tries := 0; ; {
		c := &Group{parent: parent}
		c.dir = filepath.Join(parent, prefix+strconv.Itoa(os.Getpid())+"-"+strconv.FormatUint(lastNumber.Add(1), 10))
		err := os.Mkdir(c.dir, 0o755)
		if errors.Is(err, fs.ErrExist) { // of another process with this id: one that was killed, or is in another namespace
			continue
		}
		if err != nil {
			return nil, err
		}
		if err = c.open(); err == nil {
			return c, nil
		}
		_ = unix.Rmdir(c.dir)
		// Before it was locked, another process may have removed it as a leftover.
		if tries++; tries == maxTaken || !(errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EWOULDBLOCK)) {
			return nil, err
		}
	}
}

// maxTaken bounds the directories in a row that other processes remove before makeGroup has locked them.
const maxTaken = 3

// open opens and locks the directory of c, and opens its cgroup.kill. Once it is locked, only this process removes it.
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

// Start starts cmd in c. If it returns an error, it has discarded c. broken says why no process can be started in c;
// cmd is then unchanged, and can be started without c. For retryAfter, New then returns broken, unless its
// cause is temporary.
//
// Start does not probe c in advance, because the host would receive a SIGCHLD for a process that is no command. The
// exception is the first command with a Stdin: this may come from exec.Cmd.StdinPipe, whose pipe os/exec closes when a
// start fails.
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
		home.Lock()
		home.usable = c.own
		home.Unlock()
		return nil, nil
	}
	// The cause may be cmd or c; a probe shows which.
	if failed := (*os.PathError)(nil); errors.As(err, &failed) && failed.Err != unix.ENOENT {
		broken = c.probe()
	}
	if broken == nil {
		c.Discard()
		return nil, err
	}
	broken = c.giveUp(broken)
	if cmd.Stdin != nil {
		return nil, err // cmd may have lost its input, so it cannot be started again
	}
	*cmd = unstarted
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = false, 0
	return broken, nil
}

// giveUp discards c, and records and returns broken.
func (c *Group) giveUp(broken error) error {
	c.Discard()
	return fail(c.own, broken)
}

// probe returns an error if the system cannot start processes in c. It tries to start a program that does not exist,
// and returns nil if the only error is that the program is missing.
func (c *Group) probe() error {
	_, err := syscall.ForkExec(c.dir+"/none", []string{"none"}, &syscall.ProcAttr{
		Sys: &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: c.fd},
	})
	if err == syscall.ENOENT {
		return nil
	}
	return fmt.Errorf("no process can be started in %s: %w", c.dir, err)
}

// Discard closes and removes c, in which no process was started.
func (c *Group) Discard() {
	c.Close()
	_ = unix.Rmdir(c.dir)
}

// Kill sends SIGKILL to all processes in c and below. It does not wait for them to end.
func (c *Group) Kill() {
	c.adopting = c.adopting || c.hasAdopted()
	_, _ = unix.Write(c.killer, []byte("1"))
}

// Populated reports whether any process in c or below is alive; a zombie is not. It returns true if it cannot open
// cgroup.events, for example for lack of descriptors, and false if c is removed.
func (c *Group) Populated() bool {
	var buf [128]byte
	fd, err := unix.Openat(c.fd, "cgroup.events", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err != unix.ENOENT // a removed group has no such file
	}
	defer unix.Close(fd)
	n, _ := unix.Read(fd, buf[:])
	return bytes.Contains(buf[:max(n, 0)], []byte("populated 1"))
}

// Each calls fn with the id of each process in c and below. It reports whether it has read all groups, apart from those
// that were removed meanwhile, that are threaded, or that may not be read.
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
	if unix.Fstat(c.fd, &st) == nil && st.Nlink == 2 { // no groups below: avoid a walk over dozens of files
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

// Signal sends sigs to each process in c and below that is not in the given process group.
func (c *Group) Signal(group int, sigs ...unix.Signal) {
	c.Each(func(pid int) {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return
		}
		defer unix.Close(fd)
		// This must follow the opening of the descriptor: if the process is in c now, the descriptor refers to it, and
		// not to an earlier process with the same id.
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

// Remove kills all processes in c and below, and removes c. It reports whether it has removed c by the deadline.
func (c *Group) Remove(deadline time.Time) bool {
	for b, round := patient.Backoff(0), 0; ; round++ {
		c.count()
		// Usually c is empty by now, and the first call succeeds.
		if err := unix.Rmdir(c.dir); err == nil || err == unix.ENOENT {
			return true
		}
		if round%8 == 0 {
			c.Kill()
		}
		if round%8 == 4 { // for Kill, the kernel skips a process whose main thread has ended while another one runs on
			c.Signal(0, unix.SIGKILL)
		}
		if !c.Populated() {
			removeBelow(c.dir)
		}
		if !b.Sleep(deadline) {
			return unix.Rmdir(c.dir) == nil
		}
	}
}

// Release moves all processes in c and below to the control group of this process, and removes c. It reports whether it
// has removed c by the deadline.
func (c *Group) Release(deadline time.Time) bool {
	to := filepath.Join(c.parent, "cgroup.procs")
	c.count() // before the move and Rmdir: later use counts for another group, and Rmdir removes the figures of c
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

// Open opens an existing control group to read its figures. The Group cannot start or kill processes, and its Total
// stays zero. If the error is nil, the caller must call Close.
func Open(dir string) (*Group, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return &Group{dir: dir, fd: fd, killer: -1}, err
}

// Total returns the resources that all processes in c and below, ended ones included, have used. Call it after Remove
// or Release.
func (c *Group) Total() Total { return c.total }
