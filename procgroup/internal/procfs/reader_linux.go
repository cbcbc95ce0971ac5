package procfs

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A Reader asks the system about processes. Each of its methods may block, for ever. So only [Gather] and [Ask], which
// bound their wait, and [Unhurried] give out Readers. A Reader is for one goroutine at a time.
type Reader struct {
	// Late is set if a question was not asked, because the same question is unanswered. The process may exist all
	// the same.
	Late bool
	// Short is set if a file could not be read for lack of descriptors or memory. The process may exist all the
	// same.
	Short bool

	path, stat, env []byte
	over            <-chan struct{} // closed when nobody waits for slow reads anymore, or nil
}

// IsShort reports whether err is a lack of descriptors or memory, which may be temporary.
func IsShort(err error) bool { return err == unix.EMFILE || err == unix.ENFILE || err == unix.ENOMEM }

// read reads a file, or only its beginning: as much as buf takes, unless all is set. Call it in ask.
func (r *Reader) read(pid int, name string, buf []byte, all bool) ([]byte, error) {
	r.path = append(r.path[:0], "/proc/"...)
	r.path = strconv.AppendInt(r.path, int64(pid), 10)
	r.path = append(r.path, name...)
	fd, err := unix.Open(string(r.path), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		r.Short = r.Short || IsShort(err)
		return buf[:0], err
	}
	defer unix.Close(fd)
	buf = buf[:cap(buf)]
	n := 0
	for {
		m, err := unix.Read(fd, buf[n:])
		if err == unix.EINTR {
			continue
		}
		if m <= 0 || err != nil {
			return buf[:n], err
		}
		n += m
		if n == len(buf) {
			if !all {
				return buf[:n], nil
			}
			buf = append(buf, make([]byte, len(buf))...)
		}
	}
}

// Process reads /proc/<pid>/stat. ok is false if there is no such process, or it cannot be read.
func (r *Reader) Process(pid int) (p Process, ok bool) {
	if r.stat == nil {
		r.stat = make([]byte, 1<<10)
	}
	b, err := r.beginning("Process", pid, "/stat", r.stat)
	if err != nil {
		return Process{}, false
	}
	return parseStat(b)
}

// Children lists the children of the main thread of a process, the first few hundred at most.
func (r *Reader) Children(pid int) []int {
	var buf [4 << 10]byte
	text, _ := r.beginning("Children", pid, "/task/"+strconv.Itoa(pid)+"/children", buf[:])
	return parsePIDs(text)
}

// Name returns the name of the program, without its directory and at most 15 bytes of it.
func (r *Reader) Name(pid int) string {
	var buf [64]byte
	text, _ := r.beginning("Name", pid, "/comm", buf[:])
	return string(bytes.TrimSuffix(text, []byte{'\n'}))
}

// Wait returns the kernel function in which a process waits, or "".
func (r *Reader) Wait(pid int) string {
	var buf [256]byte
	text, _ := r.beginning("Wait", pid, "/wchan", buf[:])
	if string(text) == "0" {
		return ""
	}
	return string(text)
}

// Waited returns how long the main thread of a process was ready to run but did not run. ok is false if that
// cannot be read, or if the kernel does not count it.
func (r *Reader) Waited(pid int) (d time.Duration, ok bool) {
	var buf [64]byte
	b, err := r.beginning("Waited", pid, "/schedstat", buf[:])
	_, rest, _ := bytes.Cut(b, []byte{' '})
	word, _, _ := bytes.Cut(rest, []byte{' '})
	return time.Duration(Uint(word)), err == nil
}

// SameUser reports whether a process runs as the effective user of this process, in any of its ids.
func (r *Reader) SameUser(pid int) bool {
	var buf [4 << 10]byte
	b, err := r.beginning("SameUser", pid, "/status", buf[:])
	return err == nil && hasUser(b, os.Geteuid())
}

// hasUser reports whether /proc/<pid>/status names the user.
func hasUser(status []byte, user int) bool {
	_, ids, _ := bytes.Cut(status, []byte("\nUid:"))
	ids, _, _ = bytes.Cut(ids, []byte{'\n'})
	for id := range bytes.FieldsSeq(ids) {
		if string(id) == strconv.Itoa(user) {
			return true
		}
	}
	return false
}

// InCgroup reports whether a process is or, if it has ended, was in a control group with the given name or
// in a group below it, at any depth.
func (r *Reader) InCgroup(pid int, name string) bool {
	return hasCgroup([]byte(r.Cgroup(pid)), name)
}

// Cgroup returns /proc/<pid>/cgroup, or "" if it cannot be read.
func (r *Reader) Cgroup(pid int) (text string) {
	_ = r.ask("Cgroup", pid, func() {
		b, _ := r.read(pid, "/cgroup", make([]byte, 1<<10), true)
		text = string(b)
	})
	return text
}

// hasCgroup looks for a name in /proc/<pid>/cgroup.
func hasCgroup(text []byte, name string) bool {
	for _, end := range []string{"/", "\n", " "} { // 1 is not 10; " (deleted)" follows once the group is removed
		if bytes.Contains(text, []byte("/"+name+end)) {
			return true
		}
	}
	return false
}

// parsePIDs parses ids between spaces.
func parsePIDs(text []byte) (pids []int) {
	for word := range bytes.FieldsSeq(text) {
		if pid := int(Uint(word)); pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}
