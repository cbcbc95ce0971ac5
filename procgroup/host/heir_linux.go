package host

import (
	"os"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// heir returns the process that replaces p, a host that has ended: a process of the same executable that holds the
// other end of stdin. It returns nil if there is none. A host that goes into the background starts such a process
// before it ends, so one search is enough.
//
// A host that was killed by a signal has no heir. Processes of its executable that are still alive are workers that it
// has forked, as Python's multiprocessing does; they have inherited the descriptor without using it.
func (p *process) heir(how ending) *process {
	if how.signal != nil || p.exe == (procfs.Executable{}) || p.stdin.inode == 0 {
		return nil
	}
	pids, _ := ask((*procfs.Reader).PIDs)
	// All are read at the same time, because the executables of some may be on a file system that does not answer.
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
		if executable(pid) == p.exe && holds(pid) { // the id was not reused before open
			next.identify(p.stdin)
			return next
		}
		next.close()
	}
	return nil
}

// descends reports whether the process pid is this process or descends from it. Such a process is not a host, even if
// it runs the host's executable and holds the other end of stdin. descends returns false if /proc does not show one of
// the processes in between.
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
