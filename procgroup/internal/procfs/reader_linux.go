package procfs

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A Reader reads what the kernel shows about processes. Each method may block, even for ever. So code outside this
// package gets Readers only from [Gather] and [Ask], which bound the wait, and from [Unhurried]. A Reader is for one
// goroutine at a time.
type Reader struct {
	// Late is set when a read is not begun in time; see ErrLate. The process may exist all the same. The Reader never
	// clears Late and Short: the caller does.
	Late bool
	// Short is set when a file or directory of a process cannot be opened for lack of descriptors or memory. The process
	// may exist all the same.
	Short bool

	path, stat, env []byte          // buffers
	over            <-chan struct{} // closed when the Gather is over; nil for an Unhurried Reader
}

// IsShort reports whether err is a lack of descriptors or memory, which may be temporary.
func IsShort(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM)
}

// openDir opens a directory. Call it in the read function of ask, because it may block.
func (r *Reader) openDir(path string) (*os.File, error) {
	dir, err := os.Open(path)
	r.Short = r.Short || IsShort(err)
	return dir, err
}

// read reads the file name of a process: all of it if all is set, and otherwise as much as fits into buf. Call it in
// the read function of ask, because it may block.
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

// Process reads /proc/<pid>/stat. ok is false if there is no such process, or if the file cannot be read. If r.Late or
// r.Short is set then, the process may exist.
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

// Children lists the children of the main thread of a process, at most the first few hundred. It returns nil if they
// cannot be read.
func (r *Reader) Children(pid int) []int {
	var buf [4 << 10]byte
	text, _ := r.beginning("Children", pid, "/task/"+strconv.Itoa(pid)+"/children", buf[:])
	return parsePIDs(text)
}

// Name returns the name of the program that a process runs, without its directory and at most 15 bytes long. It returns
// "" if the name cannot be read.
func (r *Reader) Name(pid int) string {
	var buf [64]byte
	text, _ := r.beginning("Name", pid, "/comm", buf[:])
	return string(bytes.TrimSuffix(text, []byte{'\n'}))
}

// Wait returns the kernel function in which a process waits, or "" if it does not wait, or the function cannot be read.
func (r *Reader) Wait(pid int) string {
	var buf [256]byte
	text, _ := r.beginning("Wait", pid, "/wchan", buf[:])
	if string(text) == "0" {
		return ""
	}
	return string(text)
}

// Waited returns the total time in which the main thread of a process was ready to run but got no processor. ok is
// false if that cannot be read.
func (r *Reader) Waited(pid int) (d time.Duration, ok bool) {
	var buf [64]byte
	b, err := r.beginning("Waited", pid, "/schedstat", buf[:])
	_, rest, _ := bytes.Cut(b, []byte{' '})
	word, _, _ := bytes.Cut(rest, []byte{' '})
	return time.Duration(Uint(word)), err == nil
}

// SameUser reports whether any of a process's user ids is the effective user id of this process. It returns false if
// the ids cannot be read.
func (r *Reader) SameUser(pid int) bool {
	var buf [4 << 10]byte
	b, err := r.beginning("SameUser", pid, "/status", buf[:])
	return err == nil && hasUser(b, os.Geteuid())
}

// hasUser reports whether user is one of the user ids in status, the content of /proc/<pid>/status.
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

// InCgroup reports whether a process is in a control group with the given name or below, at any depth. For a zombie, it
// reports whether the process was there when it ended.
func (r *Reader) InCgroup(pid int, name string) bool {
	return hasCgroup([]byte(r.Cgroup(pid)), name)
}

// Cgroup returns the content of /proc/<pid>/cgroup, or "" if it cannot be read.
func (r *Reader) Cgroup(pid int) (text string) {
	_ = r.ask("Cgroup", pid, func() {
		b, _ := r.read(pid, "/cgroup", make([]byte, 1<<10), true)
		text = string(b)
	})
	return text
}

// hasCgroup reports whether a path in text, the content of /proc/<pid>/cgroup, has an element name.
func hasCgroup(text []byte, name string) bool {
	for _, end := range []string{"/", "\n", " "} { // a space precedes "(deleted)", if the group has been removed
		if bytes.Contains(text, []byte("/"+name+end)) {
			return true
		}
	}
	return false
}

// parsePIDs parses process ids that are separated by spaces.
func parsePIDs(text []byte) (pids []int) {
	for word := range bytes.FieldsSeq(text) {
		if pid := int(Uint(word)); pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}
