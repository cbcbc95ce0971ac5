package cgroup

import (
	"bytes"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"golang.org/x/sys/unix"
)

// StarvedTime returns the total time in which at least one process in c or below was ready to run but got no processor.
// It returns false if the kernel does not count this time.
func (c *Group) StarvedTime() (time.Duration, bool) {
	var buf [256]byte
	text, ok := c.read("cpu.pressure", buf[:])
	_, rest, found := bytes.Cut(text, []byte("total="))
	word, _, _ := bytes.Cut(rest, []byte{'\n'})
	return time.Duration(procfs.Uint(word)) * time.Microsecond, ok && found
}

// CPUTime returns the processor time of all processes that are or were in c or below, and whether it could be read.
func (c *Group) CPUTime() (time.Duration, bool) {
	var buf [512]byte
	text, ok := c.read("cpu.stat", buf[:])
	_, rest, found := bytes.Cut(text, []byte("usage_usec "))
	word, _, _ := bytes.Cut(rest, []byte{'\n'})
	return time.Duration(procfs.Uint(word)) * time.Microsecond, ok && found
}

// IOBytes returns the bytes that the processes in c and below have read from and written to disks. ok is false if the
// io controller, which counts them, is not enabled for c.
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

// count sets c.total to what all processes that are or were in c and below have used. Call it before c is removed, as
// late as possible. It leaves out the figures whose controller is not enabled for c.
func (c *Group) count() {
	var buf [1 << 10]byte
	t := &c.total
	if text, ok := c.read("cpu.stat", buf[:]); ok {
		t.CPU, t.Throttled = micros(text, "usage_usec"), micros(text, "throttled_usec")
	}
	// Without controllers the files below are missing, and to open a missing file takes as long as to read one. This is
	// the usual case: the parent of c contains this process, and a group with processes enables no controllers.
	if text, ok := c.read("cgroup.controllers", buf[:]); ok && len(bytes.TrimSpace(text)) == 0 {
		return
	}
	if text, ok := c.read("memory.peak", buf[:]); ok {
		t.Memory = number(text)
	}
	if text, ok := c.read("memory.events", buf[:]); ok {
		killed := field(text, "oom_kill")
		t.Starved = killed != nil && *killed > 0
	}
	if text, ok := c.read("memory.events.local", buf[:]); ok {
		reached := field(text, "oom")
		t.AtLimit = t.Starved && reached != nil && *reached > 0
	}
	if text, ok := c.read("pids.peak", buf[:]); ok {
		t.Processes = number(text)
	}
	if read, written, ok := c.IOBytes(); ok {
		t.Read, t.Written = signed(read), signed(written)
	}
}

// field returns the value of a line such as "usage_usec 1234", or nil if there is no such line.
func field(text []byte, name string) *int64 {
	for line := range bytes.Lines(text) {
		if key, value, ok := bytes.Cut(line, []byte{' '}); ok && string(key) == name {
			return number(value)
		}
	}
	return nil
}

func micros(text []byte, name string) *time.Duration {
	n := field(text, name)
	if n == nil {
		return nil
	}
	d := time.Duration(*n) * time.Microsecond
	return &d
}

// number parses a decimal number. It returns nil if text is not a number.
func number(text []byte) *int64 {
	text = bytes.TrimSpace(text)
	if len(text) == 0 || text[0] < '0' || text[0] > '9' {
		return nil
	}
	return signed(procfs.Uint(text))
}

func signed(n uint64) *int64 {
	s := int64(n)
	return &s
}
