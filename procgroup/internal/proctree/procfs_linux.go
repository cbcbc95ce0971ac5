package proctree

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/internal/coalesce"
)

// A proc is a process as /proc shows it.
type proc struct {
	pid, ppid, pgrp int
	state           byte
	threads         int    // those that have not ended; a zombie's main thread counts
	start           uint64 // in clock ticks since boot; tells two processes with one id apart
	own, children   uint64 // processor time in clock ticks, and that of the children that were reaped
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

// parseStat reads /proc/<pid>/stat. The name, in parentheses, may hold anything.
func parseStat(b []byte) (p proc, kernel, ok bool) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || end < open || end+2 > len(b) {
		return p, false, false
	}
	p.pid = int(number(b[:open-1]))
	rest := b[end+2:]
	for field := 3; field <= 22; field++ {
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
		case 14, 15:
			p.own += number(word)
		case 16, 17:
			p.children += number(word)
		case 20:
			p.threads = int(number(word))
		case 22:
			p.start = number(word)
			ok = len(word) > 0
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

// errLate is instead of what a process shows only when it gets to it.
var errLate = errors.New("it is not there yet")

// procReader reads files below /proc without allocating for each.
type procReader struct {
	path, stat, env []byte
}

// read reads a file, or as much as buf takes of it. It must not be one that has to wait for the
// process: that is for ask.
func (r *procReader) read(pid int, name string, buf []byte, all bool) ([]byte, error) {
	r.path = append(r.path[:0], "/proc/"...)
	r.path = strconv.AppendInt(r.path, int64(pid), 10)
	r.path = append(r.path, name...)
	fd, err := unix.Open(string(r.path), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
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
	return all, true
}

// eachWithEnviron is each, with the environments of those that are not older than since. Those that
// do not come are given up late after the last that does; it is not complete then.
func (r *procReader) eachWithEnviron(pids []int, since uint64, late time.Duration, more func() bool) (all []proc, complete bool) {
	type answer struct {
		p     proc
		ok    bool
		other *asked
	}
	var over atomic.Bool
	read := func(r *procReader, i int) (a answer) {
		if over.Load() || !more() {
			over.Store(true)
			return a
		}
		var kernel bool
		if a.p, kernel, a.ok = r.status(pids[i]); a.ok && !kernel && !a.p.dead() && a.p.start >= since {
			a.other = r.environ(&a.p)
		}
		return a
	}
	answers, returned := gather(len(pids), late, read)

	// What others have asked for: all together, and not one after the other.
	var again []int
	until := time.NewTimer(late)
	defer until.Stop()
	for i := range answers {
		a := &answers[i]
		if a.other == nil {
			continue
		}
		a.p.late = true
		select {
		case <-a.other.done:
		default:
			select {
			case <-a.other.done:
			case <-until.C:
				until.Reset(0)
				continue
			}
		}
		if a.p.cookies = a.other.cookies; a.p.cookies != "" {
			a.p.late = false
		} else {
			again = append(again, i) // it may be of before this look began
		}
	}
	anew, came := gather(len(again), late, func(r *procReader, i int) answer { return read(r, again[i]) })
	for i, a := range anew {
		if came[i] && a.other == nil {
			answers[again[i]] = a
		}
	}

	all, complete = make([]proc, 0, len(pids)), !over.Load()
	for i, a := range answers {
		if !returned[i] && more() {
			a.p, a.ok = r.get(pids[i])
			a.p.late = true
		}
		complete = complete && returned[i] && !a.p.late
		if a.ok {
			all = append(all, a.p)
		}
	}
	return all, complete
}

// environ reads the environment of p, or returns who else does.
func (r *procReader) environ(p *proc) (other *asked) {
	if r.env == nil {
		r.env = make([]byte, 16<<10)
	}
	return ask(p, "/environ", func() string {
		env, err := r.read(p.pid, "/environ", r.env, true)
		if p.state == 'Z' { // it goes with the main thread, as far as that can tell
			p.exiting = false
			env, err = r.environOfThreads(p.pid, env)
		}
		r.env = env[:cap(env)]
		// Where a page of it cannot be had it ends early, without an error.
		p.blank = err == nil && (len(env) == 0 || env[len(env)-1] != 0)
		p.hidden = err != nil && err != unix.ENOENT && err != unix.ESRCH // which are its end
		p.cookies = cookies(env)
		return p.cookies
	})
}

// environOfThreads is the environment of a process without a main thread, as its other
// threads show it.
func (r *procReader) environOfThreads(pid int, buf []byte) (env []byte, err error) {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(dir)
	env = buf[:0]
	for _, thread := range threads {
		env, err = r.read(pid, "/task/"+thread.Name()+"/environ", env, true)
		if len(env) > 0 {
			break
		}
	}
	return env, err
}

// These make commands that look at the same time share one look: 200 that end together must
// not read all of /proc 200 times.
var glances, scans, lists coalesce.Call[[]proc]

// scan lists the processes, with their environments. It has begun after the call. nil is that
// /proc cannot be read. The list is others' too, and must not be changed.
func scan() []proc {
	all, _ := scans.Do(func() ([]proc, bool) { return readAll(lateTime), true })
	return all
}

// scanQuickly is scan, and waits for no process that is slow to show its environment.
func scanQuickly() []proc {
	all, _ := glances.Do(func() ([]proc, bool) { return readAll(glance), true })
	return all
}

// list is scan without the environments, for who has no use for them.
func list() []proc {
	all, _ := lists.Do(func() ([]proc, bool) { return readStatuses(), true })
	return all
}

// cookies returns the value of the variable. A variable that is set more than once has all
// its values looked at.
func cookies(env []byte) string {
	var all []string
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(cookieEnv+"=")); ok {
			all = append(all, string(value))
		}
	}
	return strings.Join(all, ",")
}

var hostStarted atomic.Uint64

// hostStart is when this process began: nothing that it has started is older. It is 0
// where that cannot be read, which may be for want of a descriptor, and pass.
func hostStart() uint64 {
	if start := hostStarted.Load(); start > 0 {
		return start
	}
	var r procReader
	p, ok := r.get(os.Getpid())
	if !ok {
		return 0
	}
	hostStarted.Store(p.start)
	return p.start
}

// readAll reads all processes but this one, with the environments of those that it may have started.
func readAll(late time.Duration) []proc {
	var r procReader
	all, _ := r.eachWithEnviron(allPids(), hostStart(), late, always)
	return all
}

// readStatuses is readAll without environments.
func readStatuses() []proc {
	var r procReader
	all, _ := r.each(allPids(), always)
	return all
}

func always() bool { return true }

// allPids lists all processes but this one. There are none where /proc cannot be read.
func allPids() (pids []int) {
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
