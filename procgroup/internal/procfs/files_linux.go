package procfs

import (
	"bytes"
	"cmp"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// An Open describes an open file of a process.
type Open struct {
	Link   string // as in /proc/<pid>/fd: "pipe:[42]", "socket:[42]", "anon_inode:[eventfd]", or a path
	Reads  bool   // the file is open for reading
	Writes bool   // the file is open for writing
}

// Inode returns the number in a link such as "pipe:[42]". ok is false if the link is not of the given kind, such as
// "pipe".
func (o *Open) Inode(kind string) (inode uint64, ok bool) {
	text, ok := strings.CutPrefix(o.Link, kind+":[")
	return Uint([]byte(strings.TrimSuffix(text, "]"))), ok
}

// OpenFile returns the open file of a descriptor of a process. It does not follow the link, and so does not depend on
// the file system of the file. ok is false if the descriptor cannot be read.
func (r *Reader) OpenFile(pid, fd int) (o Open, ok bool) {
	_ = r.ask("OpenFile", pid, func() { o, ok = openFile(pid, fd) })
	return o, ok
}

func openFile(pid, fd int) (o Open, ok bool) {
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

// InodeOf returns the inode number of the file behind a descriptor of a process. ok is false if the descriptor cannot
// be read. Before Linux 5.14, InodeOf may wait for the file system of the file.
func (r *Reader) InodeOf(pid, fd int) (inode uint64, ok bool) {
	_ = r.ask("InodeOf", pid, func() {
		var buf [256]byte
		text, err := r.read(pid, "/fdinfo/"+strconv.Itoa(fd), buf[:], false)
		if err != nil {
			return
		}
		for line := range bytes.Lines(text) {
			if number, found := bytes.CutPrefix(line, []byte("ino:\t")); found {
				inode, ok = Uint(bytes.TrimSpace(number)), true
				return
			}
		}
		info, err := statx(unix.AT_FDCWD, "/proc/"+strconv.Itoa(pid)+"/fd/"+strconv.Itoa(fd))
		inode, ok = info.Ino, err == nil
	})
	return inode, ok
}

// maxOpen bounds the descriptors of a process that OpenFiles accepts.
const maxOpen = 1024

// OpenFiles returns the open files of a process. It does not follow the links. It leaves out descriptors that cannot be
// read. ok is false if the descriptors cannot be listed, or are more than maxOpen.
func (r *Reader) OpenFiles(pid int) (all []Open, ok bool) {
	_ = r.ask("OpenFiles", pid, func() {
		dir, err := r.openDir("/proc/" + strconv.Itoa(pid) + "/fd")
		if err != nil {
			return
		}
		defer dir.Close()
		names, err := dir.Readdirnames(maxOpen + 1)
		if err != nil && err != io.EOF || len(names) > maxOpen { // io.EOF if there are no descriptors
			return
		}
		for _, name := range names {
			if fd, err := strconv.Atoi(name); err == nil {
				if o, ok := openFile(pid, fd); ok {
					all = append(all, o)
				}
			}
		}
		ok = true
	})
	return all, ok
}

// A File identifies a pipe, a socket or a terminal.
type File struct {
	link           string // the link in /proc/<pid>/fd
	dev, ino, rdev uint64
	Terminal       bool // the file is a terminal
}

// OwnFile returns the identity of the file behind a descriptor of this process. ok is false if the file is no pipe,
// socket or terminal, or cannot be read. OwnFile may block if the file's server does not answer.
func OwnFile(fd int) (f File, ok bool) {
	stall("OwnFile", 0)
	info, err := statx(fd, "")
	if err != nil {
		return File{}, false
	}
	if f, ok = fileOf(info); ok {
		f.link, err = os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	}
	return f, ok && err == nil
}

// IsDevice reports whether a descriptor of this process refers to a character device, such as a terminal. It returns
// false if the descriptor cannot be examined.
func IsDevice(fd int) bool {
	stall("IsDevice", 0)
	info, err := statx(fd, "")
	return err == nil && info.Mode&unix.S_IFMT == unix.S_IFCHR
}

// fileOf returns the identity of a file from the result of statx, without its link. ok is false if the file is no pipe,
// socket or terminal.
func fileOf(info unix.Statx_t) (f File, ok bool) {
	f.dev = unix.Mkdev(info.Dev_major, info.Dev_minor)
	f.ino = info.Ino
	switch info.Mode & unix.S_IFMT {
	case unix.S_IFIFO, unix.S_IFSOCK:
	case unix.S_IFCHR:
		if major := info.Rdev_major; major != 4 && (major < 136 || major > 143) { // neither tty(4) nor pts(4)
			return File{}, false
		}
		f = File{rdev: unix.Mkdev(info.Rdev_major, info.Rdev_minor), Terminal: true}
	default:
		return File{}, false
	}
	return f, true
}

// statx returns the status of the file at path, or of fd if path is "". The callers use only the type and the numbers
// of the file, which never change, so a server of the file system is not contacted where the kernel can avoid it.
func statx(fd int, path string) (info unix.Statx_t, err error) {
	const want = unix.STATX_TYPE | unix.STATX_INO
	err = unix.Statx(fd, path, unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC|unix.AT_NO_AUTOMOUNT, want, &info)
	if err != unix.ENOSYS && err != unix.EPERM { // before Linux 4.11, or in a sandbox
		return info, err
	}
	var stat unix.Stat_t
	if path == "" {
		err = unix.Fstat(fd, &stat)
	} else {
		err = unix.Stat(path, &stat)
	}
	if err != nil {
		return info, err
	}
	info.Mode, info.Ino = uint16(stat.Mode), stat.Ino
	info.Dev_major, info.Dev_minor = unix.Major(uint64(stat.Dev)), unix.Minor(uint64(stat.Dev))     //nolint:unconvert // 32 bits on some systems
	info.Rdev_major, info.Rdev_minor = unix.Major(uint64(stat.Rdev)), unix.Minor(uint64(stat.Rdev)) //nolint:unconvert // likewise
	return info, nil
}

// Refers reports whether the descriptor fd of p refers to f, and returns false if that cannot be found out in time. o
// is the result of OpenFile for fd. If p has opened /dev/tty, Refers compares f with the controlling terminal of p. It
// follows the link only if it may lead to f, because the file system of another file may not answer.
func (r *Reader) Refers(f File, p *Process, fd int, o Open) (yes bool) {
	switch {
	case o.Link == "/dev/tty":
		return f.Terminal && f.rdev == p.Terminal
	case !mayBe(f.link, o.Link):
		return false
	}
	_ = r.ask("Refers", p.PID, func() {
		info, err := statx(unix.AT_FDCWD, "/proc/"+strconv.Itoa(p.PID)+"/fd/"+strconv.Itoa(fd))
		g, ok := fileOf(info)
		g.link = f.link
		yes = err == nil && ok && f == g
	})
	return yes
}

// mayBe reports whether two links may lead to the same pipe, socket or terminal. Any two paths may, because a named
// file can have several paths, for example in different mount namespaces.
func mayBe(link, other string) bool {
	if strings.HasPrefix(link, "/") {
		return strings.HasPrefix(other, "/") || strings.HasPrefix(other, "(")
	}
	return link == other
}

// Holds reports whether a process has a descriptor with the given link, such as "pipe:[42]". If writable is set, only a
// descriptor that can be written to counts. The error says why the descriptors cannot be listed; a descriptor that
// cannot be read does not count.
func (r *Reader) Holds(pid int, link string, writable bool) (holds bool, err error) {
	late := r.ask("Holds", pid, func() {
		var dir *os.File
		if dir, err = r.openDir("/proc/" + strconv.Itoa(pid) + "/fd"); err != nil {
			return
		}
		defer dir.Close()
		_, err = eachLink(dir, math.MaxInt, func(fd, to string) bool {
			if holds = to == link; holds && writable {
				info, err := r.read(pid, "/fdinfo/"+fd, make([]byte, 256), false)
				holds = err == nil && isWritable(info)
			}
			return !holds
		})
	})
	return holds, cmp.Or(late, err)
}

// eachLink lists the open descriptors in dir, the directory fd of a process, at most most of them, and returns their
// number. It calls fn with the link of each in turn, until fn returns false, and leaves out links that cannot be read.
// It cuts links to 64 bytes; those of pipes and sockets are shorter. The error says why the others cannot be listed.
// Call eachLink in the read function of ask, because it may block.
func eachLink(dir *os.File, most int, fn func(fd, link string) bool) (listed int, err error) {
	for listed < most {
		names, err := dir.Readdirnames(min(most-listed, maxOpen))
		listed += len(names)
		for _, fd := range names {
			var buf [64]byte
			n, err := unix.Readlinkat(int(dir.Fd()), fd, buf[:])
			if err == nil && !fn(fd, string(buf[:n])) {
				return listed, nil
			}
		}
		if err == io.EOF {
			return listed, nil
		} else if err != nil {
			return listed, err
		}
	}
	return listed, nil
}

// isWritable reports whether a descriptor can be written to. info is its file in fdinfo. isWritable returns false if
// info has no valid flags.
func isWritable(info []byte) bool {
	for line := range bytes.Lines(info) {
		if text, ok := bytes.CutPrefix(line, []byte("flags:")); ok {
			flags, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 8, 64)
			return err == nil && flags&unix.O_ACCMODE != unix.O_RDONLY
		}
	}
	return false
}
