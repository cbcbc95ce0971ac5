package procfs

import (
	"bytes"
	"os"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
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

// PIDs lists the ids of all processes except this one. It returns nil if /proc cannot be read.
func (r *Reader) PIDs() (pids []int) {
	_ = r.ask("PIDs", 0, func() { pids = readPIDs() })
	return pids
}

func readPIDs() (pids []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	self := os.Getpid()
	pids = make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid != self {
			pids = append(pids, pid)
		}
	}
	return pids
}

// LastPID returns the process id that the kernel has assigned last, or 0 if it cannot be read. It may block: in a
// container, lxcfs may serve /proc/loadavg.
func (r *Reader) LastPID() (pid int) {
	_ = r.ask("LastPID", 0, func() { pid = readLastPID() })
	return pid
}

func readLastPID() int {
	var buf [64]byte
	fd, err := unix.Open("/proc/loadavg", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf[:])
	if err != nil || n <= 0 {
		return 0
	}
	return parseLastPID(buf[:n])
}

// parseLastPID returns the last number in text, the content of /proc/loadavg.
func parseLastPID(text []byte) int {
	line := bytes.TrimSpace(text)
	return int(Uint(line[bytes.LastIndexByte(line, ' ')+1:]))
}

// OwnChildren lists the children of all threads of this process. ok is false if no thread's list could be read: the
// kernel was built without CONFIG_PROC_CHILDREN, or no descriptor is left.
func OwnChildren() (pids []int, ok bool) {
	dir, err := os.Open("/proc/self/task")
	if err != nil {
		return nil, false
	}
	threads, _ := dir.Readdirnames(-1)
	dir.Close() // before the next file is opened: only one descriptor may be left
	var r Reader
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
