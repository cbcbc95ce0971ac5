package proctree

import (
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// A proc is a process with the cookies in its environment, which identify the commands that have started it.
type proc struct {
	procfs.Process
	cookies string // the values of the variable cookieEnv, separated by commas
	blank   bool   // the environment is empty or incomplete: the process has none, or is in the middle of an exec
	hidden  bool   // the environment may not be read
	near    bool   // hidden, but with the user or the control group of this process, as a command's processes have
	foreign bool   // hidden, and of another user
	late    bool   // the environment was not read in time
}

// wanted reports whether the environment of p is worth reading. It is not for a process that began before since, which
// cannot be a member, nor for kernel threads and dead processes, which have none.
func (p *proc) wanted(since uint64) bool { return !p.Kernel && !p.Dead() && p.Start >= since }

// readEnviron reads the environment of p, and sets the fields of p that depend on it. It may block: call it only in the
// read function of a procfs.Gather.
func (p *proc) readEnviron(r *procfs.Reader) {
	env, err := r.Environ(&p.Process)
	p.late = err == procfs.ErrLate
	if p.State == 'Z' {
		p.Exiting = false // only the main thread has exited
	}
	p.blank = err == nil && !procfs.Complete(env)
	p.hidden = err != nil && !p.late && !procfs.Gone(err)
	p.foreign = p.hidden && !r.SameUser(p.PID)
	p.near = p.hidden && (!p.foreign || r.Cgroup(p.PID) == r.Cgroup(os.Getpid()))
	p.cookies = strings.Join(procfs.Values(env, cookieEnv), ",")
}

// always returns true. As the argument more of statuses and environs it allows any number of processes.
func always() bool { return true }

// unseen returns the proc of a process whose status was not read in time: late is set, and only the id is known. The
// greatest Start makes it count as younger than any leader, so that it may be a member.
func unseen(pid int) proc {
	return proc{Process: procfs.Process{PID: pid, Start: ^uint64(0)}, late: true}
}

func unseenKey(pid int) procfs.Key { return procfs.Key{PID: pid, Start: ^uint64(0)} }

// statuses reads the processes with the given ids, without their environments, as long as more returns true. It leaves
// out processes that have ended. complete is false if it leaves out any others, which were not read in time.
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

// environs reads the processes with the given ids, as long as more returns true, and the environments of those that did
// not begin before since. It leaves out processes that have ended. It sets late where a read was not done before the
// patience was over. complete is false if a process is late, if others were left out, or if short is true. short
// reports whether descriptors or memory ran out.
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
	// The late processes are read once more, without their environments, which cause the delay.
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

// signalProc sends sig to the process with the given key, unless it has ended or its state cannot be read in time.
func signalProc(key procfs.Key, sig unix.Signal) {
	fd, err := unix.PidfdOpen(key.PID, 0)
	if err == unix.ESRCH {
		return
	}
	if err == nil {
		defer unix.Close(fd)
	}
	// This must follow the opening of the descriptor: if the id still belongs to the process now, it did so then.
	if now := procfs.StatusOf(key.PID); !now.SameAs(key) {
		return
	}
	if err == nil {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	} else {
		_ = unix.Kill(key.PID, sig)
	}
}

// The patience of a look is the time for which it waits for slow reads of /proc, most of which are of environments.
const (
	// quickPatience is for a look before a kill, because the processes may fork meanwhile.
	quickPatience = 10 * time.Millisecond
	// viewPatience is for Snapshot, which delays the signal after a limit, and for a look of package waits.
	viewPatience = 30 * time.Millisecond
	// fullPatience is for looks that may take longer.
	fullPatience = 100 * time.Millisecond
)

// cookieEnv is the environment variable that identifies descendants: children inherit it, in any process group or
// session. Its value is a list of cookies, because a command may be a supervisor that has commands of its own.
const cookieEnv = "TOOLDEADLINE_TREE"

// withoutEnded removes from unsure the processes that a second look shows to have ended, or to be exiting. Any process
// that ends between the two reads of a look is alive in the first and shows no environment in the second, so it is
// unsure even if it is not a member.
func withoutEnded(unsure []proc) []proc {
	return slices.DeleteFunc(unsure, func(p proc) bool {
		now := procfs.StatusOf(p.PID)
		same := now.SameAs(p.Key()) || now.There && p.Key() == unseenKey(p.PID)
		return now.Known && (!same || now.Dead() || now.Exiting)
	})
}

func pids(found []proc) []int {
	var ids []int
	for _, p := range found {
		if !slices.Contains(ids, p.PID) {
			ids = append(ids, p.PID)
		}
	}
	return ids
}
