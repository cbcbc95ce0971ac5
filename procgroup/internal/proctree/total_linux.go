package proctree

import (
	"bytes"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// Total is Tree.Total. Without a control group nothing counts what all processes have used.
func (t *linuxTree) Total() Total {
	if t.cgroup == nil {
		return Total{}
	}
	return t.cgroup.total
}

// count reads what everything that is or was in c and below has used. It must be called before c is removed, and
// as late as possible. Which files there are depends on the controllers that are enabled for c.
func (c *cgroup) count() {
	var buf [1 << 10]byte
	t := &c.total
	if text, ok := c.read("cpu.stat", buf[:]); ok {
		t.CPU, t.Throttled = micros(text, "usage_usec"), micros(text, "throttled_usec")
	}
	// To look for files that are not there costs as much as to read one. Where this process is in the group above,
	// there are none.
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
	if read, written, ok := c.ioBytes(); ok {
		t.Read, t.Written = signed(read), signed(written)
	}
}

// field returns the value of a line such as "usage_usec 1234", nil if there is none.
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

// number returns the number that a text is, nil if it is none.
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
