package host

import (
	"os"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// heir returns the process that a host has left behind in its place: one of the same executable that
// holds the other end of stdin now. It need not look again later, because what went into the
// background began before the host ended.
//
// A host that was killed by a signal leaves no heir. What of it is alive are workers that it has
// forked, as Python's multiprocessing does, and that have inherited the descriptor without using it.
func (p *process) heir(how ending) *process {
	if how.signal != nil || p.exe == (procfs.Executable{}) || p.stdin.inode == 0 {
		return nil
	}
	pids, _ := ask((*procfs.Reader).PIDs)
	// All at once: what some of them run may be on a file system that does not answer.
	run, _ := procfs.Gather(procfs.NewPatience(patience), len(pids), func(r *procfs.Reader, i int) procfs.Executable {
		return r.Executable(pids[i])
	})
	holds := func(pid int) bool {
		held, _ := p.stdin.heldBy(pid)
		return held
	}
	for i, pid := range pids {
		if run[i] != p.exe || !holds(pid) || descends(pid) {
			continue
		}
		next, err := open(pid)
		if err != nil {
			continue
		}
		if executable(pid) == p.exe && holds(pid) { // next is still the process that was found
			next.identify(p.stdin)
			return next
		}
		next.close()
	}
	return nil
}

// descends reports whether a process is this one or was started by it. Such a process is not a host, even
// where this program is of the host's executable, and has got the other end of its own stdin.
func descends(pid int) bool {
	for pid > 1 {
		if pid == os.Getpid() {
			return true
		}
		now, ok := stat(pid)
		if !ok {
			return false
		}
		pid = now.Parent
	}
	return false
}
