package proctree

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A proc is a process as /proc shows it.
type proc struct {
	pid, ppid, pgrp int
	state           byte
	threads         int    // those that have not ended; a zombie's main thread counts
	start           uint64 // in clock ticks since boot; tells two processes with one id apart
	environAt       uint64 // the address of its environment; 0 where there is none, or it may not be known
	own, children   uint64 // processor time in clock ticks, and that of the children that were reaped
	faults          uint64 // page faults without a disk, and those of the children that were reaped
	cookies         string // the value of the variable cookieEnv
	blank           bool   // it shows no environment, or not all: in the middle of an exec, or it has none
	hidden          bool   // its environment may not be read
	late            bool   // it has not come in time, and nothing is known of it
	exiting         bool   // it shows no environment any more, and will be a zombie
}

// A procKey tells a process from another with the same id.
type procKey struct {
	pid   int
	start uint64
}

func (p *proc) key() procKey { return procKey{p.pid, p.start} }

// dead reports whether there is nothing left to kill. A process whose main thread has ended
// while another runs on is shown as a zombie, and is alive.
func (p *proc) dead() bool {
	return (p.state == 'Z' && p.threads <= 1) || p.state == 'X' || p.state == 'x'
}

// running reports whether a process runs, is ready to, or waits for a disk.
func (p *proc) running() bool { return p.state == 'R' || p.state == 'D' }

// parseStat reads /proc/<pid>/stat. The name, in parentheses, may hold anything.
func parseStat(b []byte) (p proc, kernel, ok bool) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || end < open || end+2 > len(b) {
		return p, false, false
	}
	p.pid = int(number(b[:open-1]))
	rest := b[end+2:]
	for field := 3; field <= 50; field++ {
		word, after, _ := bytes.Cut(rest, []byte{' '})
		switch field {
		case 3:
			if len(word) != 1 {
				return p, false, false
			}
			p.state = word[0]
		case 4:
			p.ppid = int(number(word))
		case 5:
			p.pgrp = int(number(word))
		case 9:
			const exiting, kthread = 0x00000004, 0x00200000
			p.exiting = number(word)&exiting != 0
			kernel = number(word)&kthread != 0
		case 10, 11:
			p.faults += number(word)
		case 14, 15:
			p.own += number(word)
		case 16, 17:
			p.children += number(word)
		case 20:
			p.threads = int(number(word))
		case 22:
			p.start = number(word)
			ok = len(word) > 0
		case 50:
			p.environAt = number(word)
		}
		rest = after
	}
	return p, kernel, ok
}

func number(b []byte) (n uint64) {
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0
		}
		n = n*10 + uint64(c-'0')
	}
	return n
}

// procReader reads files below /proc without allocating for each.
type procReader struct {
	path, stat, env []byte
	short           bool // there was no descriptor or no memory for a file, and so it knows nothing of it

	late   time.Duration // for ask and askFile
	thread *thread
}

// read reads a file, or as much as buf takes of it. It must not be one that has to wait for the
// process: that is for ask.
func (r *procReader) read(pid int, name string, buf []byte, all bool) ([]byte, error) {
	r.path = append(r.path[:0], "/proc/"...)
	r.path = strconv.AppendInt(r.path, int64(pid), 10)
	r.path = append(r.path, name...)
	fd, err := unix.Open(string(r.path), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		r.short = r.short || isShort(err)
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

// isShort reports whether err is for want of descriptors or memory, and may pass.
func isShort(err error) bool { return err == unix.EMFILE || err == unix.ENFILE || err == unix.ENOMEM }

// get reads one process, without its environment.
func (r *procReader) get(pid int) (p proc, ok bool) {
	p, _, ok = r.status(pid)
	return p, ok
}

func (r *procReader) status(pid int) (p proc, kernel, ok bool) {
	if r.stat == nil {
		r.stat = make([]byte, 1<<10)
	}
	b, err := r.read(pid, "/stat", r.stat, false)
	if err != nil {
		return p, false, false
	}
	return parseStat(b)
}

// each reads processes, as long as more reports true.
func (r *procReader) each(pids []int, more func() bool) (all []proc, complete bool) {
	all = make([]proc, 0, len(pids))
	for _, pid := range pids {
		if !more() {
			return all, false
		}
		if p, ok := r.get(pid); ok {
			all = append(all, p)
		}
	}
	return all, !r.short
}

// childrenOf lists the children of the main thread of a process, the first few hundred at most.
func (r *procReader) childrenOf(pid int) (pids []int) {
	var buf [4 << 10]byte
	text, _ := r.read(pid, "/task/"+strconv.Itoa(pid)+"/children", buf[:], false)
	for word := range bytes.FieldsSeq(text) {
		pids = append(pids, int(number(word)))
	}
	return pids
}

// procWorks reports whether /proc is there and shows the processes under the ids that
// this process knows them by.
func procWorks() bool {
	self, err := os.Readlink("/proc/self")
	return err == nil && self == strconv.Itoa(os.Getpid()) && hostStart() > 0
}

// signalProc signals p, if its id still means the same process.
func signalProc(p *proc, sig unix.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err == unix.ESRCH {
		return
	}
	if err == nil {
		defer unix.Close(fd)
	}
	// Looked at after the descriptor was opened: if it is p now, it was p then.
	var r procReader
	now, ok := r.get(p.pid)
	if !ok || now.start != p.start {
		return
	}
	if err == nil {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	} else {
		_ = unix.Kill(p.pid, sig)
	}
}

// ofSameUser reports whether a process runs as the user that this one does.
func ofSameUser(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	_, ids, ok := bytes.Cut(b, []byte("\nUid:"))
	if err != nil || !ok {
		return false
	}
	ids, _, _ = bytes.Cut(ids, []byte{'\n'})
	for id := range bytes.FieldsSeq(ids) {
		if string(id) == strconv.Itoa(os.Geteuid()) {
			return true
		}
	}
	return false
}
