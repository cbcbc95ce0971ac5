package host

import (
	"os"
	"strconv"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// heir returns the process that a host has left behind in its place: one of the same executable that
// holds the other end of stdin now. It need not look again later, because what went into the
// background began before the host ended.
//
// A host that was killed by a signal leaves no heir. What of it is alive are workers that it has
// forked, as Python's multiprocessing does, and that have inherited the descriptor without using it.
func (p *process) heir(how ending) *process {
	if how.signal != nil || p.exe == (file{}) || p.stdin.inode == 0 {
		return nil
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	is := func(pid int) bool {
		if executable(pid) != p.exe {
			return false
		}
		held, _ := p.stdin.heldBy(pid)
		return held
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || !is(pid) || descends(pid) {
			continue
		}
		next, err := open(pid)
		if err != nil {
			continue
		}
		if is(pid) { // and not another one by now
			next.identify(p.stdin)
			return next
		}
		next.close()
	}
	return nil
}

// descends reports whether a process is this one or was started by it. Such a one is no host, even
// where this program is of the host's executable, and has got the other end of its own stdin.
func descends(pid int) bool {
	var read procfs.Reader
	for pid > 1 {
		if pid == os.Getpid() {
			return true
		}
		stat, ok := read.Process(pid)
		if !ok {
			return false
		}
		pid = stat.Parent
	}
	return false
}
