package procfs

import (
	"bytes"
	"encoding/binary"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Thread is what /proc/<pid>/task/<tid>/syscall tells about a thread.
type Thread struct {
	ID      int
	Running bool      // it runs, or is ready to
	Call    int       // the number of the system call in which it waits; -1 if there is none
	Args    [6]uint64 // the arguments of the call
	Narrow  bool      // its stack lies in the first 4 GiB, so it may be a 32-bit program, with numbers of its own
}

// Threads reads the threads of p, the main thread first. It is not ok if one of them may not be read or has ended
// meanwhile: then nothing is known about the process. It may block: see Gather.
func (r *Reader) Threads(p *Process) (all []Thread, ok bool) {
	late := r.slowly(p, "/syscall", func() {
		base := "/proc/" + strconv.Itoa(p.PID) + "/task"
		dir, err := os.Open(base)
		if err != nil {
			return
		}
		names, err := dir.Readdirnames(-1)
		dir.Close()
		if err != nil || len(names) == 0 {
			return
		}
		var buf [256]byte
		for _, name := range names {
			text, err := r.read(p.PID, "/task/"+name+"/syscall", buf[:], false)
			t, parsed := parseSyscall(text)
			if err != nil || !parsed {
				all = nil
				return
			}
			if t.ID, _ = strconv.Atoi(name); t.ID == p.PID {
				all = append([]Thread{t}, all...)
				continue
			}
			all = append(all, t)
		}
		ok = true
	})
	return all, ok && late == nil
}

// parseSyscall parses /proc/<pid>/syscall: "running", or the number of the call, its arguments if it is not -1,
// the stack pointer and the program counter.
func parseSyscall(text []byte) (t Thread, ok bool) {
	words := bytes.Fields(text)
	if len(words) == 1 && string(words[0]) == "running" {
		return Thread{Running: true, Call: -1}, true
	}
	if len(words) != 9 && len(words) != 3 {
		return Thread{}, false
	}
	call, err := strconv.Atoi(string(words[0]))
	if err != nil || call < -1 || call >= 0 != (len(words) == 9) {
		return Thread{}, false
	}
	t.Call = call
	for i, word := range words[1 : len(words)-1] {
		hex, found := strings.CutPrefix(string(word), "0x")
		n, err := strconv.ParseUint(hex, 16, 64)
		if !found || err != nil {
			return Thread{}, false
		}
		if i < len(t.Args) && call >= 0 {
			t.Args[i] = n
		} else {
			t.Narrow = n < 1<<32
		}
	}
	return t, true
}

// Memory reads memory of a process at an address, all of buf. It is not ok if that is not possible.
func Memory(pid int, at uint64, buf []byte) (ok bool) {
	if len(buf) == 0 {
		return true
	}
	local := []unix.Iovec{{Base: &buf[0]}}
	local[0].SetLen(len(buf))
	n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(at), Len: len(buf)}}, 0)
	return err == nil && n == len(buf)
}

// A PollFD is an entry of the array of poll(2).
type PollFD struct {
	FD     int32
	Events int16
	_      int16
}

// maxPolled is how many descriptors a call may wait for before its process counts as unknown.
const maxPolled = 1024

// Polled reads an array of poll(2).
func Polled(pid int, at, n uint64) (all []PollFD, ok bool) {
	if n > maxPolled {
		return nil, false
	}
	buf := make([]byte, int(n)*int(unsafe.Sizeof(PollFD{})))
	if !Memory(pid, at, buf) {
		return nil, false
	}
	for ; len(buf) > 0; buf = buf[8:] {
		all = append(all, PollFD{
			FD: int32(binary.NativeEndian.Uint32(buf)), Events: int16(binary.NativeEndian.Uint16(buf[4:])),
		})
	}
	return all, true
}

// Selected reads a set of select(2) with descriptors below n. There is none at address 0.
func Selected(pid int, at, n uint64) (all []int, ok bool) {
	if at == 0 || n == 0 {
		return nil, true
	}
	if n > maxPolled {
		return nil, false
	}
	buf := make([]byte, (n+63)/64*8)
	if !Memory(pid, at, buf) {
		return nil, false
	}
	for fd := range int(n) {
		if binary.NativeEndian.Uint64(buf[fd/64*8:])&(1<<(fd%64)) != 0 {
			all = append(all, fd)
		}
	}
	return all, true
}

// A Target is a descriptor that an epoll instance watches.
type Target struct {
	FD     int
	Events uint32
	Inode  uint64 // 0 if this kernel does not tell
}

// Targets returns what the epoll instance behind a descriptor of a process watches.
func (r *Reader) Targets(pid, epoll int) (all []Target, ok bool) {
	var buf [4 << 10]byte
	text, err := r.read(pid, "/fdinfo/"+strconv.Itoa(epoll), buf[:], true)
	if err != nil {
		return nil, false
	}
	return parseTargets(text), true
}

func parseTargets(text []byte) (all []Target) {
	for line := range bytes.Lines(text) {
		words := bytes.Fields(line)
		if len(words) < 4 || string(words[0]) != "tfd:" || string(words[2]) != "events:" {
			continue
		}
		events, err := strconv.ParseUint(string(words[3]), 16, 32)
		if err != nil {
			continue
		}
		t := Target{FD: int(Uint(words[1])), Events: uint32(events)}
		for _, word := range words[4:] {
			if hex, found := bytes.CutPrefix(word, []byte("ino:")); found {
				t.Inode, _ = strconv.ParseUint(string(hex), 16, 64)
			}
		}
		all = append(all, t)
	}
	return all
}

// An Open is an open file of a process.
type Open struct {
	Link   string // as in /proc/<pid>/fd: "pipe:[42]", "socket:[42]", "anon_inode:[eventfd]", or a path
	Reads  bool   // it can be read
	Writes bool   // it can be written to
}

// Inode returns the number in a link such as "pipe:[42]", if its prefix is kind.
func (o *Open) Inode(kind string) (inode uint64, ok bool) {
	text, ok := strings.CutPrefix(o.Link, kind+":[")
	return Uint([]byte(strings.TrimSuffix(text, "]"))), ok
}

// OpenFile returns what a descriptor of a process refers to.
func OpenFile(pid, fd int) (o Open, ok bool) {
	path := "/proc/" + strconv.Itoa(pid) + "/fd/" + strconv.Itoa(fd)
	link, err := os.Readlink(path)
	if err != nil {
		return Open{}, false
	}
	var stat unix.Stat_t
	if unix.Lstat(path, &stat) != nil {
		return Open{}, false
	}
	return Open{Link: link, Reads: stat.Mode&0o400 != 0, Writes: stat.Mode&0o200 != 0}, true
}

// InodeOf returns the number of the file behind a descriptor of a process.
func InodeOf(pid, fd int) (inode uint64, ok bool) {
	var stat unix.Stat_t
	err := unix.Stat("/proc/"+strconv.Itoa(pid)+"/fd/"+strconv.Itoa(fd), &stat)
	return stat.Ino, err == nil
}

// HasTimers reports whether a process has timers of timer_create(2), as far as this kernel tells.
func HasTimers(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/timers")
	return err == nil && len(text) > 0
}

// maxOpen is how many descriptors of a process OpenFiles looks at.
const maxOpen = 1024

// OpenFiles returns what the descriptors of a process refer to. It is not ok if they may not be read, or there
// are too many.
func OpenFiles(pid int) (all []Open, ok bool) {
	dir, err := os.Open("/proc/" + strconv.Itoa(pid) + "/fd")
	if err != nil {
		return nil, false
	}
	defer dir.Close()
	names, err := dir.Readdirnames(maxOpen + 1)
	if err != nil || len(names) > maxOpen {
		return nil, false
	}
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil {
			if o, ok := OpenFile(pid, fd); ok {
				all = append(all, o)
			}
		}
	}
	return all, true
}

// A File identifies a pipe, a socket or a terminal.
type File struct {
	dev, ino, rdev uint64
	Terminal       bool
}

// FileOf returns the identity of what a path refers to, such as /proc/self/fd/0. It is not ok if that is no pipe,
// socket or terminal.
func FileOf(path string) (f File, ok bool) {
	var stat unix.Stat_t
	if unix.Stat(path, &stat) != nil {
		return File{}, false
	}
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFIFO, unix.S_IFSOCK:
		return File{dev: uint64(stat.Dev), ino: stat.Ino}, true
	case unix.S_IFCHR:
		if major := unix.Major(uint64(stat.Rdev)); major == 4 || major >= 136 && major <= 143 { // a console, or a slave of pts(4)
			return File{rdev: uint64(stat.Rdev), Terminal: true}, true
		}
	}
	return File{}, false
}

// Refers reports whether a descriptor of p refers to f. A process with f as its controlling terminal may have opened it
// as /dev/tty.
func (f File) Refers(p *Process, fd int, o Open) bool {
	if o.Link == "/dev/tty" {
		return f.Terminal && f.rdev == p.Terminal
	}
	g, ok := FileOf("/proc/" + strconv.Itoa(p.PID) + "/fd/" + strconv.Itoa(fd))
	return ok && f == g
}
