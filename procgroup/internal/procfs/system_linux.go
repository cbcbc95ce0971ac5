package procfs

import (
	"bytes"
	"os"
	"strconv"
	"sync/atomic"
)

// Works reports whether /proc can be read and belongs to the process id namespace of this process.
func Works() bool {
	self, err := os.Readlink("/proc/self")
	return err == nil && self == strconv.Itoa(os.Getpid()) && SelfStart() > 0
}

var selfStart atomic.Uint64

// SelfStart returns the Start of this process. A process that it has started is never older. SelfStart returns 0 if the
// Start cannot be read, for example for lack of descriptors; a later call may succeed.
func SelfStart() uint64 {
	if start := selfStart.Load(); start > 0 {
		return start
	}
	b, err := new(Reader).read(os.Getpid(), "/stat", make([]byte, 1<<10), false)
	p, ok := parseStat(b)
	if err != nil || !ok {
		return 0
	}
	selfStart.Store(p.Start)
	return p.Start
}

// PIDs lists the ids of all processes except this one. It returns nil if /proc cannot be read in time.
func (r *Reader) PIDs() (pids []int) {
	_ = r.ask("PIDs", 0, func() {
		names, err := r.namesIn("/proc")
		if err != nil {
			return
		}
		self := os.Getpid()
		pids = make([]int, 0, len(names))
		for _, name := range names {
			if pid, err := strconv.Atoi(name); err == nil && pid != self {
				pids = append(pids, pid)
			}
		}
	})
	return pids
}

// namesIn lists a directory, in no order.
func (r *Reader) namesIn(path string) ([]string, error) {
	dir, err := r.openDir(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Readdirnames(-1)
}

// LastPID returns the process id that the kernel has assigned last, or 0 if it cannot be read. It may block: in a
// container, lxcfs may serve /proc/loadavg.
func (r *Reader) LastPID() (pid int) {
	_ = r.ask("LastPID", 0, func() {
		text, _ := os.ReadFile("/proc/loadavg")
		pid = parseLastPID(text)
	})
	return pid
}

// parseLastPID returns the last number in text, the content of /proc/loadavg.
func parseLastPID(text []byte) int {
	line := bytes.TrimSpace(text)
	return int(Uint(line[bytes.LastIndexByte(line, ' ')+1:]))
}

// OwnChildren lists the children of all threads of this process. ok is false if no thread's list could be read: the
// kernel was built without CONFIG_PROC_CHILDREN, or no descriptor is left.
func OwnChildren() (pids []int, ok bool) {
	var r Reader
	threads, _ := r.namesIn("/proc/self/task")
	buf := make([]byte, 4<<10)
	for _, thread := range threads {
		b, err := r.read(os.Getpid(), "/task/"+thread+"/children", buf, true)
		if err != nil {
			continue // the thread may have ended
		}
		pids, ok, buf = append(pids, parsePIDs(b)...), true, b[:cap(b)]
	}
	return pids, ok
}
