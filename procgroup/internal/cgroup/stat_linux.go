package cgroup

import (
	"bytes"
	"cmp"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"golang.org/x/sys/unix"
)

// StarvedTime returns the total time in which at least one process in c or below was ready to run but got no processor.
// It returns false if the kernel does not count this time.
func (c *Group) StarvedTime() (time.Duration, bool) { return c.micros("cpu.pressure", "total=") }

// CPUTime returns the processor time of all processes that are or were in c or below, and whether it could be read.
func (c *Group) CPUTime() (time.Duration, bool) { return c.micros("cpu.stat", "usage_usec ") }

// IOBytes returns the bytes that the processes in c and below have read from and written to disks. ok is false if the
// io controller, which counts them, is not enabled for c, or if its file cannot be read.
func (c *Group) IOBytes() (read, written uint64, ok bool) {
	var buf [16 << 10]byte
	text, ok := c.read("io.stat", buf[:])
	read, written = parseIOStat(text)
	return read, written, ok
}

// parseIOStat adds up the bytes of all devices in an io.stat. A device has a line such as
// 8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6.
func parseIOStat(text []byte) (read, written uint64) {
	for word := range bytes.FieldsSeq(text) {
		if value, ok := bytes.CutPrefix(word, []byte("rbytes=")); ok {
			read += procfs.Uint(value)
		}
		if value, ok := bytes.CutPrefix(word, []byte("wbytes=")); ok {
			written += procfs.Uint(value)
		}
	}
	return read, written
}

// read reads the file name of c, as much of it as fits into buf. It returns false if the file cannot be read.
func (c *Group) read(name string, buf []byte) ([]byte, bool) {
	fd, err := unix.Openat(c.fd, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf)
	return buf[:max(n, 0)], err == nil
}

// figure returns the number that follows before in the file name of c, which begins with the number if before is "". It
// returns false if there is none.
func (c *Group) figure(name, before string) (n int64, ok bool) {
	var buf [1 << 10]byte
	text, _ := c.read(name, buf[:])
	_, text, found := bytes.Cut(text, []byte(before))
	digits := text[:len(text)-len(bytes.TrimLeft(text, "0123456789"))]
	return int64(procfs.Uint(digits)), found && len(digits) > 0
}

// micros is figure for a number of microseconds.
func (c *Group) micros(name, before string) (time.Duration, bool) {
	n, ok := c.figure(name, before)
	return time.Duration(n) * time.Microsecond, ok
}

// count sets c.total to what all processes that are or were in c and below have used. A figure that cannot be read now,
// for example because c is gone or no descriptor is left, stays. Call it before c is removed, as late as possible.
func (c *Group) count() {
	t, before := c.figures(), c.total
	c.total = Total{
		CPU: cmp.Or(t.CPU, before.CPU), Throttled: cmp.Or(t.Throttled, before.Throttled),
		Memory: cmp.Or(t.Memory, before.Memory), Processes: cmp.Or(t.Processes, before.Processes),
		Read: cmp.Or(t.Read, before.Read), Written: cmp.Or(t.Written, before.Written),
		Starved: t.Starved || before.Starved, AtLimit: t.AtLimit || before.AtLimit,
	}
}

// figures leaves out the figures whose controller is not enabled for c.
func (c *Group) figures() (t Total) {
	t.CPU, t.Throttled = known(c.CPUTime()), known(c.micros("cpu.stat", "throttled_usec "))
	// Without controllers the files below are missing, and to open a missing file takes as long as to read one. This is
	// the usual case: the parent of c contains this process, and a group with processes enables no controllers.
	var buf [1 << 10]byte
	if text, ok := c.read("cgroup.controllers", buf[:]); ok && len(bytes.TrimSpace(text)) == 0 {
		return t
	}
	t.Memory, t.Processes = known(c.figure("memory.peak", "")), known(c.figure("pids.peak", ""))
	killed, _ := c.figure("memory.events", "oom_kill ")
	reached, _ := c.figure("memory.events.local", "oom ")
	t.Starved, t.AtLimit = killed > 0, killed > 0 && reached > 0
	if read, written, ok := c.IOBytes(); ok {
		t.Read, t.Written = known(int64(read), true), known(int64(written), true)
	}
	return t
}

// known returns a pointer to value, or nil if it is not known.
func known[T any](value T, ok bool) *T {
	if !ok {
		return nil
	}
	return &value
}
