package proctree

import (
	"bytes"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"golang.org/x/sys/unix"
)

// starvedTime returns for how long some process in c or below has been ready to run and did not. It is not ok if the
// kernel does not count that.
func (c *cgroup) starvedTime() (time.Duration, bool) {
	var buf [256]byte
	text, ok := c.read("cpu.pressure", buf[:])
	_, rest, found := bytes.Cut(text, []byte("total="))
	word, _, _ := bytes.Cut(rest, []byte{'\n'})
	return time.Duration(procfs.Uint(word)) * time.Microsecond, ok && found
}

// cpuTime returns the processor time of all processes that are or were in c or below.
func (c *cgroup) cpuTime() (time.Duration, bool) {
	var buf [512]byte
	text, ok := c.read("cpu.stat", buf[:])
	_, rest, found := bytes.Cut(text, []byte("usage_usec "))
	word, _, _ := bytes.Cut(rest, []byte{'\n'})
	return time.Duration(procfs.Uint(word)) * time.Microsecond, ok && found
}

// ioBytes returns the bytes read from and written to disks. It is not ok if counting them is not enabled.
func (c *cgroup) ioBytes() (read, written uint64, ok bool) {
	var buf [16 << 10]byte
	text, ok := c.read("io.stat", buf[:])
	read, written = parseIOStat(text)
	return read, written, ok
}

// parseIOStat adds up the devices: 8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6.
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

// read reads the beginning of a file of c.
func (c *cgroup) read(name string, buf []byte) ([]byte, bool) {
	fd, err := unix.Openat(c.fd, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf)
	return buf[:max(n, 0)], err == nil
}
