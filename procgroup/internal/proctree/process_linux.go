package proctree

import (
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// A proc is a process, with the cookies that tell which commands have started it.
type proc struct {
	procfs.Process
	cookies string // the values of the variable cookieEnv
	blank   bool   // it shows no environment, or not all: it has none, or is in the middle of an exec
	hidden  bool   // its environment may not be read
	near    bool   // it is hidden, and runs as this user or in the control group of this process, as what a command starts does
	foreign bool   // it is hidden, and runs as another user
	late    bool   // its environment has not come in time, and nothing is known about it
}

// wanted reports whether the environment of p is worth reading: a process that began before since is not a member.
func (p *proc) wanted(since uint64) bool { return !p.Kernel && !p.Dead() && p.Start >= since }

// readEnviron reads the environment. Call it under procfs.Gather.
func (p *proc) readEnviron(r *procfs.Reader) {
	env, err := r.Environ(&p.Process)
	p.late = err == procfs.ErrLate
	if p.State == 'Z' {
		p.Exiting = false // its main thread is, which says nothing about the others
	}
	p.blank = err == nil && !procfs.Complete(env)
	p.hidden = err != nil && !p.late && !procfs.Gone(err)
	p.foreign = p.hidden && !r.SameUser(p.PID)
	p.near = p.hidden && (!p.foreign || r.Cgroup(p.PID) == r.Cgroup(os.Getpid()))
	p.cookies = strings.Join(procfs.Values(env, cookieEnv), ",")
}

// always returns true. As the more of statuses and environs it allows any number of processes.
func always() bool { return true }

// unseen returns the proc of a process that is not shown in time. Only its id is known: the process may be
// anybody's, and may have begun at any time.
func unseen(pid int) proc {
	return proc{Process: procfs.Process{PID: pid, Start: ^uint64(0)}, late: true}
}

func unseenKey(pid int) procfs.Key { return procfs.Key{PID: pid, Start: ^uint64(0)} }

// statuses reads processes without their environments, as long as more reports true. It leaves out a process that is
// not shown in time, and the list is then not complete.
func statuses(patience *procfs.Patience, pids []int, more func() bool) (all []proc, complete bool) {
	type answer struct {
		procfs.Glimpse
		skipped bool
	}
	answers, returned := procfs.Gather(patience, len(pids), func(r *procfs.Reader, i int) (a answer) {
		if a.skipped = !more(); !a.skipped {
			a.Glimpse = procfs.Glance(r, pids[i])
		}
		return a
	})
	all, complete = make([]proc, 0, len(pids)), true
	for i := range answers {
		a := &answers[i]
		complete = complete && returned[i] && a.Known && !a.skipped
		if a.There {
			all = append(all, proc{Process: a.Process})
		}
	}
	return all, complete
}

// environs reads processes, as long as more reports true, with the environments of those that did not begin before
// since. Environments that do not come before the patience is over are late, and the list is then not complete.
// short reports whether descriptors or memory ran out.
func environs(patience *procfs.Patience, pids []int, since uint64, more func() bool) (all []proc, complete, short bool) {
	type answer struct {
		p                        proc
		ok, late, short, skipped bool
	}
	answers, returned := procfs.Gather(patience, len(pids), func(r *procfs.Reader, i int) (a answer) {
		if a.skipped = !more(); a.skipped {
			return a
		}
		r.Late, r.Short = false, false
		a.p.Process, a.ok = r.Process(pids[i])
		if a.late = !a.ok && r.Late; a.ok && a.p.wanted(since) {
			a.p.readEnviron(r)
		}
		a.short = r.Short
		return a
	})
	all, complete = make([]proc, 0, len(pids)), true
	var late []int
	for i, a := range answers {
		switch {
		case !returned[i]:
			if a.skipped = !more(); !a.skipped {
				late = append(late, pids[i])
			}
		case a.ok:
			all = append(all, a.p)
		case a.late:
			all = append(all, unseen(pids[i]))
		}
		short = short || a.short
		complete = complete && !a.skipped && !a.late && !a.p.late
	}
	// The processes that were late are read once more, without their environments, which are what takes time.
	again, shown := procfs.Gather(procfs.NewPatience(quickPatience), len(late), func(r *procfs.Reader, i int) procfs.Glimpse { return procfs.Glance(r, late[i]) })
	for i, g := range again {
		p := proc{Process: g.Process}
		switch {
		case !shown[i] || !g.Known:
			p = unseen(late[i])
		case !g.There:
			continue
		}
		p.late = p.late || p.wanted(since)
		complete = complete && !p.late
		all = append(all, p)
	}
	return all, complete && !short, short
}

// signalProc signals the process of a key, if its id still means the same process.
func signalProc(key procfs.Key, sig unix.Signal) {
	fd, err := unix.PidfdOpen(key.PID, 0)
	if err == unix.ESRCH {
		return
	}
	if err == nil {
		defer unix.Close(fd)
	}
	// This must follow the opening of the descriptor: if the process is the same now, it was the same then.
	if now := procfs.StatusOf(key.PID); !now.SameAs(key) {
		return
	}
	if err == nil {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	} else {
		_ = unix.Kill(key.PID, sig)
	}
}

// isDevice reports whether a descriptor refers to a character device, as a terminal is.
func isDevice(fd int) bool { return procfs.IsDevice(fd) }

// How long a look waits for processes that are slow to show their environments. A process that is late then may
// or may not be a member.
const (
	// quickPatience is the patience of a look before a kill, since the processes may fork meanwhile.
	quickPatience = 10 * time.Millisecond
	// viewPatience is the patience of a look for Result.Tree, which delays the signal after a limit.
	viewPatience = 30 * time.Millisecond
	// fullPatience is the patience of all other looks.
	fullPatience = 100 * time.Millisecond
)

// cookieEnv is the environment variable by which descendants are known: children inherit it, however far they
// move away. Its value is a list, because a command may be a supervisor itself.
const cookieEnv = "TOOLDEADLINE_TREE"

// withoutEnded returns unsure without the processes that a second look shows to be gone, or about to be: a process that
// ends between the two reads of a look is alive in the first and shows no environment in the second, even if it is no
// member.
func withoutEnded(unsure []proc) []proc {
	return slices.DeleteFunc(unsure, func(p proc) bool {
		now := procfs.StatusOf(p.PID)
		same := now.SameAs(p.Key()) || now.There && p.Key() == unseenKey(p.PID)
		return now.Known && (!same || now.Dead() || now.Exiting)
	})
}
