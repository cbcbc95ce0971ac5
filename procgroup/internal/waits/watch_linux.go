package waits

import (
	"os"
	"slices"
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
	members []usedCPU     // as the last call of examine has returned them
	used    time.Duration // processor time of members at that call
	before  time.Duration // processor time of members at the last look
	called  time.Time     // time of the last look
	looked  time.Time     // time of the last call of examine
	waiting State         // result of the last call of examine, confirmed or not
	pid     int           // likewise
	sure    bool          // the call of examine before has had the same result
	running bool          // a thread was running at the last call of examine, or may have been
	found   bool          // the last look has called examine, which has found a wait
}

// A usedCPU is a process with the processor time that it had used at a look.
type usedCPU struct {
	key procfs.Key
	cpu time.Duration
}

// idleShare lets a tree that waits use 1/idleShare of a core: language runtimes have threads that wake up now and then.
const idleShare = 100 // 1 %

// lookCost limits the looks to 1/lookCost of the time, apart from a look that has to confirm another.
const lookCost = 100 // 1 %

// An Input is the standard input of a command: a pipe, a socket or a terminal.
type Input struct {
	file  procfs.File
	stdin *os.File
}

// InputOf returns the Input of a command with stdin as its standard input. The caller may close stdin afterwards; then
// Look.Secret is always false. ok is false if stdin is another kind of file, for which no command waits, if the system
// does not show what processes wait for, or if the file system does not answer in time.
func InputOf(stdin *os.File) (in Input, ok bool) {
	if len(waitCalls) == 0 || stdin == nil {
		return Input{}, false
	}
	in.stdin = stdin
	raw, err := stdin.SyscallConn() // Fd would set the file to blocking mode
	if err != nil {
		return Input{}, false
	}
	asked := new(struct { // set by a call that may outlast Within
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

// A tree lists its processes. The trees of package proctree implement it on Linux.
type tree interface {
	// Members lists the members, or none if not all can be read now. whole reports whether the list includes members
	// that have left the process group.
	Members() (members []procfs.Process, whole bool)
	// Patience returns the Patience for one look.
	Patience() *procfs.Patience
}

// Watch returns a Meter for t, a tree of package proctree whose leader has in as its standard input. With the zero
// Input, the Meter finds only StoppedByTerminal. Watch returns nil if the processes of t cannot be listed.
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

// next returns the time until the next look, after a look that took cost. To confirm a wait, the
// next look takes place after LookEvery, whatever it costs. Otherwise the interval is LookEvery or, after a confirmed
// result, sureEvery; after a look of high cost it is longer, up to maxEvery.
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

// isSecret reports whether stdin is a terminal that takes lines and does not echo them. It uses the standard input of
// the command, and not that of the process that waits, which may have opened the terminal as /dev/tty. It returns false
// if stdin is closed.
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

// wait returns the confirmed State of the tree, and the process that waits or was stopped. It examines all threads only
// if the processor time of the members does not show the result.
func (w *inputWatch) wait(now time.Time) (State, int) {
	used, same := w.usage(w.members)
	passed := now.Sub(w.called)
	w.called, w.found = now, false
	works := same && used-w.before > passed/idleShare
	switch {
	case same && used == w.used && w.sure && !w.running:
		// No member has run since the last examination, and none has started a process, so the confirmed result still
		// holds. That would not be enough to confirm a result: a process that is ready to run may have got no processor.
		w.before = used
		return w.waiting, w.pid
	case works && !w.sure:
		w.before = used
		return None, 0
	}
	// A tree that has worked after a confirmed wait is examined at once: it may be waiting again.
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

// usage returns the total processor time of the members. same is false if a member is gone, or there are no members.
func usage(members []usedCPU) (used time.Duration, same bool) {
	for _, m := range members {
		cpu, ok := procfs.CPUTime(m.key.PID)
		if !ok {
			return 0, false
		}
		used += cpu
	}
	return used, len(members) > 0
}

// examine looks at all threads of the tree. running reports whether a thread was running, or no member was listed: then
// an unchanged processor time at a later look does not show that nothing has happened.
func examine(t tree, input procfs.File) (w State, pid int, members []usedCPU, running bool) {
	listed, whole := t.Members()
	l := &waitLook{self: os.Getpid(), input: input, members: listed, reader: procfs.Unhurried(), patience: t.Patience()}
	all := l.classify(l.look())
	members = make([]usedCPU, len(all))
	for i := range all {
		members[i] = usedCPU{all[i].Key(), all[i].cpu}
		running = running || all[i].class&isRunning != 0
	}
	if len(all) == 0 {
		return None, 0, nil, true
	}
	if pid := stoppedByTerminal(all); pid != 0 {
		return StoppedByTerminal, pid, members, running
	}
	if !whole {
		return None, 0, members, running // members that have left the process group are not listed, and may go on
	}
	w, pid = verdict(all)
	return w, pid, members, running
}

// stoppedByTerminal returns the id of a process that the terminal has stopped. It returns 0 if there is none, or if
// another process of the tree may go on: in a shell with job control, a user may continue the stopped process, and the
// end of the tree would lose the other work.
func stoppedByTerminal(all []waiter) (pid int) {
	for i := range all {
		p := &all[i]
		sig := unix.Signal(p.Status) // the signal that has stopped the process, in state 'T'
		switch {
		case p.State == 'T' && (sig == unix.SIGTTIN || sig == unix.SIGTTOU):
			pid = p.PID
		case p.State == 'T':
		case p.class&(onInput|onTimer|onExternal|isRunning|isUnknown) != 0:
			return 0
		}
	}
	return pid
}

func sameKeys(a, b []usedCPU) bool {
	return slices.EqualFunc(a, b, func(a, b usedCPU) bool { return a.key == b.key })
}

func sum(all []usedCPU) (d time.Duration) {
	for _, m := range all {
		d += m.cpu
	}
	return d
}
