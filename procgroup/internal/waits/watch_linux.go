package waits

import (
	"os"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"golang.org/x/sys/unix"
)

// An inputWatch is the state of a Meter.
type inputWatch struct {
	usage   func(members []usedCPU) (used time.Duration, same bool)
	examine func() (w State, pid int, members []usedCPU, running bool)
	input   procfs.File
	stdin   *os.File
	members []usedCPU     // at the last look at all threads
	used    time.Duration // processor time of members then
	before  time.Duration // processor time at the last call
	called  time.Time
	looked  time.Time
	waiting State // the finding of the last look, confirmed or not
	pid     int
	sure    bool // an earlier look has found it too
	running bool // a thread ran at that look, or may have
	found   bool // the last look was at all threads, and has found a wait
}

type usedCPU struct {
	key procfs.Key
	cpu time.Duration
}

// idleShare is the part of the time in which a tree that waits may use a core: virtual machines of languages have
// threads that wake up now and then.
const idleShare = 100 // 1 %

// lookCost is the largest part of the time that looks may take.
const lookCost = 100 // 1 %

// An Input is a file that a command reads: a pipe, a socket or a terminal.
type Input struct {
	file  procfs.File
	stdin *os.File
}

// InputOf returns the input of a command with stdin as its standard input. The caller may close stdin afterwards. ok is
// false if such a file never makes a command wait, the system does not show what processes wait for, or the file
// system does not answer.
func InputOf(stdin *os.File) (in Input, ok bool) {
	if len(waitCalls) == 0 || stdin == nil {
		return Input{}, false
	}
	in.stdin = stdin
	raw, err := stdin.SyscallConn() // Fd would make it block
	if err != nil {
		return Input{}, false
	}
	asked := new(struct { // filled in by a call that may outlast Within
		file procfs.File
		ok   bool
		err  error
	})
	if !patient.Within(patient.Patience, stdin, func() {
		asked.err = raw.Control(func(fd uintptr) { asked.file, asked.ok = procfs.OwnFile(int(fd)) })
	}) {
		return Input{}, false
	}
	in.file = asked.file
	return in, asked.ok && asked.err == nil
}

// A tree lists its processes, as the trees of package proctree do.
type tree interface {
	// Members lists the members, or none if not all can be read now. whole reports whether no member can have left
	// unseen.
	Members() (members []procfs.Process, whole bool)
	// Patience returns the Patience of one look.
	Patience() *procfs.Patience
}

// Watch returns a Meter for a tree of package proctree whose leader has in as its standard input. It returns nil if the
// processes of the tree cannot be known.
func Watch(t any, in Input) Meter {
	members, ok := t.(tree)
	if !ok || !procfs.Works() {
		return nil
	}
	examine := func() (State, int, []usedCPU, bool) { return examine(members, in.file) }
	return (&inputWatch{usage: usage, examine: examine, input: in.file, stdin: in.stdin}).look
}

func (w *inputWatch) look() (l Look) {
	begun := time.Now()
	l.State, l.Pid = w.wait(begun)
	l.Secret = l.State != None && l.State != StoppedByTerminal && w.input.Terminal && isSecret(w.stdin)
	l.Next = w.next(time.Since(begun))
	return l
}

// next returns the time until the next look, after a look that took cost. A wait that has been found once is looked at
// again soon, whatever it costs: it is found within 1 s. A tree that was found unchanged has done next to nothing
// since: a wait that begins now begins at most sureEvery before the first of the two looks that find it.
func (w *inputWatch) next(cost time.Duration) time.Duration {
	const sureEvery, maxEvery = 600 * time.Millisecond, 3 * time.Second
	every := LookEvery
	switch {
	case w.sure:
		every = sureEvery
	case w.found:
		return LookEvery
	}
	return min(max(every, lookCost*cost), maxEvery)
}

// isSecret reports whether a terminal takes lines and does not echo them. It asks through the file that the command was
// given: the process that reads it may have opened it as /dev/tty, and have another standard input.
func isSecret(stdin *os.File) (secret bool) {
	raw, err := stdin.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		mode, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
		secret = err == nil && mode.Lflag&unix.ICANON != 0 && mode.Lflag&unix.ECHO == 0
	})
	return secret
}

func (w *inputWatch) wait(now time.Time) (State, int) {
	used, same := w.usage(w.members)
	passed := now.Sub(w.called)
	w.called, w.found = now, false
	works := same && used-w.before > passed/idleShare
	switch {
	case same && used == w.used && w.sure && !w.running:
		// Nothing has run since the last look: a process that starts another one runs. That does not
		// confirm a look: a process that could go on may have found no processor.
		w.before = used
		return w.waiting, w.pid
	case works && !w.sure:
		w.before = used
		return None, 0
	}
	// A tree that has worked after it was quiet may have ended that long ago.
	waiting, pid, members, running := w.examine()
	w.running = running
	w.sure = !works && waiting == w.waiting && pid == w.pid && sameKeys(members, w.members) && sum(members)-w.used <= now.Sub(w.looked)/idleShare
	w.waiting, w.pid, w.members, w.used, w.looked = waiting, pid, members, sum(members), now
	w.before, w.found = w.used, waiting != None
	if !w.sure {
		return None, 0
	}
	return waiting, pid
}

// usage returns the processor time of the members of the last look. same is false if a member is gone.
func usage(members []usedCPU) (used time.Duration, same bool) {
	for _, m := range members {
		cpu, ok := cpuTime(m.key.PID)
		if !ok {
			return 0, false
		}
		used += cpu
	}
	return used, len(members) > 0
}

// cpuTime returns the processor time of a process. It reports false if the process is gone.
func cpuTime(pid int) (time.Duration, bool) {
	const cpuclockSched = 2
	var ts unix.Timespec
	if unix.ClockGettime(int32(^pid<<3|cpuclockSched), &ts) != nil {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}

// examine looks at all threads of the tree. While one is running, processor time that was read later says nothing.
func examine(t tree, input procfs.File) (w State, pid int, members []usedCPU, running bool) {
	listed, whole := t.Members()
	l := &waitLook{self: os.Getpid(), input: input, members: listed, reader: procfs.Unhurried(), patience: t.Patience()}
	all := l.classify(l.look())
	members = make([]usedCPU, len(all))
	for i := range all {
		members[i] = usedCPU{all[i].Key(), all[i].cpu}
		running = running || (all[i].main|all[i].others)&isRunning != 0
	}
	if len(all) == 0 {
		return None, 0, nil, true
	}
	if pid := stoppedByTerminal(all); pid != 0 {
		return StoppedByTerminal, pid, members, running
	}
	if !whole {
		return None, 0, members, running // processes that have left the process group are not known, and may go on
	}
	w, pid = verdict(all)
	return w, pid, members, running
}

// stoppedByTerminal returns a process that the terminal has stopped, if nothing else of the tree goes on: a shell with
// job control continues it when a person says so, and the end of the tree would lose its other work.
func stoppedByTerminal(all []waiter) (pid int) {
	for i := range all {
		p := &all[i]
		sig := unix.Signal(p.Status) // the signal, if the process is stopped
		switch c := p.main | p.others; {
		case p.State == 'T' && (sig == unix.SIGTTIN || sig == unix.SIGTTOU):
			pid = p.PID
		case p.State == 'T':
		case c&(onInput|onTimer|onExternal|isRunning|isUnknown) != 0:
			return 0
		}
	}
	return pid
}

func sameKeys(a, b []usedCPU) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].key != b[i].key {
			return false
		}
	}
	return true
}

func sum(all []usedCPU) (d time.Duration) {
	for _, m := range all {
		d += m.cpu
	}
	return d
}
