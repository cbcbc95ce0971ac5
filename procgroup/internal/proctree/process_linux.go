package proctree

import (
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// A proc is a process, with the cookies that tell which commands have started it.
type proc struct {
	procfs.Process
	cookies string // the values of the variable cookieEnv
	blank   bool   // it shows no environment, or not all: it has none, or is in the middle of an exec
	hidden  bool   // its environment may not be read
	late    bool   // its environment has not come in time, and nothing is known about it
}

// wanted reports whether the environment of p is worth reading: a process that began before since is no member.
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
	p.cookies = strings.Join(procfs.Values(env, cookieEnv), ",")
}

// always sets no bound to how many processes are read.
func always() bool { return true }

// statuses reads processes without their environments, as long as more reports true.
func statuses(r *procfs.Reader, pids []int, more func() bool) (all []proc, complete bool) {
	all = make([]proc, 0, len(pids))
	for _, pid := range pids {
		if !more() {
			return all, false
		}
		if p, ok := r.Process(pid); ok {
			all = append(all, proc{Process: p})
		}
	}
	return all, !r.Short
}

// environs reads processes, as long as more reports true, with the environments of those that did not begin before
// since. Environments that do not come before the patience is over are late, and the list is then not complete.
// short reports whether descriptors or memory were wanting.
func environs(patience *procfs.Patience, pids []int, since uint64, more func() bool) (all []proc, complete, short bool) {
	type answer struct {
		p                  proc
		ok, short, skipped bool
	}
	answers, returned := procfs.Gather(patience, len(pids), func(r *procfs.Reader, i int) (a answer) {
		if a.skipped = !more(); a.skipped {
			return a
		}
		if a.p.Process, a.ok = r.Process(pids[i]); a.ok && a.p.wanted(since) {
			a.p.readEnviron(r)
		}
		a.short = r.Short
		return a
	})
	all, complete = make([]proc, 0, len(pids)), true
	var r procfs.Reader
	for i, a := range answers {
		if !returned[i] {
			if a.skipped = !more(); !a.skipped {
				a.p.Process, a.ok = r.Process(pids[i])
				a.p.late = a.ok && a.p.wanted(since)
			}
		}
		short = short || a.short
		complete = complete && !a.skipped && !a.p.late
		if a.ok {
			all = append(all, a.p)
		}
	}
	short = short || r.Short
	return all, complete && !short, short
}

// isSame reports whether the process of a key is still there, and returns what is known about it now.
func isSame(r *procfs.Reader, key procfs.Key) (now procfs.Process, same bool) {
	now, ok := r.Process(key.PID)
	return now, ok && now.Start == key.Start
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
	// Looked at after the descriptor was opened: if it is the same now, it was the same then.
	var r procfs.Reader
	if _, same := isSame(&r, key); !same {
		return
	}
	if err == nil {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	} else {
		_ = unix.Kill(key.PID, sig)
	}
}
