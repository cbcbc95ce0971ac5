package proctree

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/cgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

func Start(ctx context.Context, cmd *exec.Cmd, want Kind) (Tree, error) {
	if err := ownGroup(cmd); err != nil {
		return nil, err
	}
	switch want {
	case Auto:
		if !cmd.SysProcAttr.UseCgroupFD { // else the caller has chosen a control group
			if t, noCgroup, err := startInCgroup(cmd); noCgroup == nil {
				return t, err
			}
		}
		if procfs.Works() {
			return startWithCookie(cmd)
		}
		return startInGroup(cmd)
	case Group:
		return startInGroup(cmd)
	case Descendants:
		if !procfs.Works() {
			return nil, unavailable(want, unsupported("/proc does not show the processes of this process id namespace"))
		}
		return startWithCookie(cmd)
	case Cgroup:
		if cmd.SysProcAttr.UseCgroupFD {
			return nil, unavailable(want, unsupported("SysProcAttr.UseCgroupFD is set"))
		}
		t, noCgroup, err := startInCgroup(cmd)
		if noCgroup != nil {
			return nil, unavailable(want, errors.Join(unsupported("no control group can be made"), noCgroup))
		}
		return t, err
	case Helper, HelperTree:
		return startWithHelper(ctx, cmd, want)
	}
	return nil, unavailable(want, unsupported("not on Linux"))
}

func startInGroup(cmd *exec.Cmd) (Tree, error) {
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &linuxTree{leader: newLeader(cmd), kind: Group, begun: begun}, nil
}

func startWithCookie(cmd *exec.Cmd) (Tree, error) {
	cookie := setCookie(cmd)
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	l := newLeader(cmd)
	return &linuxTree{leader: l, kind: Descendants, begun: begun, others: &descendants{leader: l, cookie: cookie, begun: begun}}, nil
}

// startInCgroup starts cmd in a control group of its own. noCgroup says why there can be no such group; cmd can then be
// started without it.
func startInCgroup(cmd *exec.Cmd) (t Tree, noCgroup, err error) {
	c, noCgroup := cgroup.New()
	if noCgroup != nil {
		return nil, noCgroup, nil
	}
	if noCgroup, err = c.Start(cmd); noCgroup != nil || err != nil {
		return nil, noCgroup, err
	}
	return &linuxTree{leader: newLeader(cmd), kind: Cgroup, cgroup: c}, nil, nil
}

// startWithHelper starts a helper that starts cmd, and waits for the helper's report. With HelperTree, a command that
// exits with code 0 counts as running until the last of its processes has ended.
func startWithHelper(ctx context.Context, cmd *exec.Cmd, kind Kind) (Tree, error) {
	if !helperReady.Load() {
		return nil, unavailable(kind, unsupported("main has not called procgroup.HelperMain"))
	}
	if !procfs.Works() {
		return nil, unavailable(kind, unsupported("/proc does not show the processes of this process id namespace"))
	}
	a := cmd.SysProcAttr
	if a.Chroot != "" || a.Foreground || a.Setctty && !(a.Setsid && a.Ctty == 0) || a.Cloneflags != 0 {
		return nil, unavailable(kind, unsupported("SysProcAttr has something that a helper cannot pass on"))
	}
	if cmd.Err != nil {
		return nil, cmd.Err
	}
	lifeRead, lifeWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer lifeRead.Close()
	statusRead, statusWrite, err := os.Pipe()
	if err != nil {
		lifeWrite.Close()
		return nil, err
	}
	defer statusWrite.Close()
	h := &helper{lifeline: lifeWrite, status: statusRead, session: a.Setsid}

	path, cookie, begun := cmd.Path, setCookie(cmd), time.Now()
	args := cmd.Args
	if len(args) == 0 {
		args = []string{path}
	}
	n := len(cmd.ExtraFiles)
	mode := strconv.Itoa(n)
	if a.Setsid { // the session is for the command; the helper gets only a process group
		a.Setsid, a.Setpgid = false, true
		mode += helperSetsid
	}
	if a.Setctty {
		a.Setctty = false
		mode += helperSetctty
	}
	if kind == HelperTree {
		mode += helperWhole
	}
	cmd.Args = append([]string{"procgroup-helper", path}, args...)
	cmd.Path = "/proc/self/exe"
	cmd.Env = append(cmd.Env, helperEnv+"="+mode)
	cmd.ExtraFiles = append(cmd.ExtraFiles[:n:n], lifeRead, statusWrite)
	if err := cmd.Start(); err != nil {
		h.close()
		if failed := (*os.PathError)(nil); errors.As(err, &failed) && failed.Path == cmd.Path {
			failed.Path = path // report the command: its working directory may be missing
		}
		return nil, err
	}
	statusWrite.Close()
	l := newLeader(cmd)
	t := &linuxTree{
		leader: l, kind: kind, helper: h,
		others: &descendants{leader: l, cookie: cookie, begun: begun, except: l.pid},
	}
	if err := h.awaitStart(ctx, path); err != nil {
		// The command may be running, and only the report may be late.
		t.Kill(time.Now().Add(reapTime))
		t.Close()
		return nil, err
	}
	return t, nil
}

// Watch returns a Foreign for p, a child of this process. The Foreign finds the descendants of p through their parents.
// The error is os.ErrProcessDone if p has been waited for, and wraps errors.ErrUnsupported if no pidfd can be opened.
func Watch(p *os.Process) (Foreign, error) {
	fd := openPidfd(p.Pid)
	if fd == nil {
		if err := p.Signal(unix.Signal(0)); errors.Is(err, os.ErrProcessDone) {
			return nil, err
		}
		return nil, unsupported("there is no descriptor of the process to be had")
	}
	l := &leader{pid: p.Pid, fd: fd}
	return foreign{&linuxTree{leader: l, kind: Descendants, others: &descendants{leader: l}}}, nil
}

// A foreign is a linuxTree whose leader is waited for elsewhere.
type foreign struct{ *linuxTree }

// Close closes the pidfd of the child.
func (f foreign) Close() { f.close() }
