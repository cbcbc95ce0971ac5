package proctree

import (
	"os"
	"slices"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"golang.org/x/sys/unix"
)

// A waitCall is a kind of system calls that may wait. Where it waits follows from its arguments.
type waitCall uint8

const (
	callRead waitCall = iota + 1
	callWrite
	callPoll
	callPpoll
	callSelect
	callEpoll
	callEpoll2
	callFutex
	callChild
	callSignal
	callSignalWait
	callSleep
)

// A class says what a thread waits for. Where it is several things, class is a set of them.
type class uint16

const (
	onInput    class = 1 << iota // the command's input
	onTimer                      // a time, perhaps beside something else
	onChild                      // a child
	onInternal                   // another thread or process of the tree
	onSignal                     // a signal
	onExternal                   // anything that others may end: a connection, a file that changes, a lock
	isRunning                    // it does not wait, or for a disk
	isStopped                    // by a signal, or a debugger
	isUnknown                    // it may not be seen, or is not understood
)

// restless is what no tree has that certainly waits for input.
const restless = onExternal | isRunning | isStopped | isUnknown

// A waitLook classifies the threads of a tree at one moment.
type waitLook struct {
	reader   procfs.Reader
	input    procfs.File
	members  []proc
	writers  map[uint64]bool // inodes of pipes that a member can write to, and this process cannot
	readers  map[uint64]bool // inodes of pipes that a member can read
	sockets  map[uint64]bool // inodes of sockets that members have
	gathered bool
}

// A waiter is a process with what its threads wait for.
type waiter struct {
	proc
	main, others class
	cpu          time.Duration
}

// classify returns what the threads of the members wait for, zombies left out.
func (l *waitLook) classify() (all []waiter) {
	alive := slices.DeleteFunc(slices.Clone(l.members), func(p proc) bool { return p.Dead() })
	type answer struct {
		threads []procfs.Thread
		ok      bool
	}
	read, returned := procfs.Gather(procfs.NewPatience(viewPatience), len(alive), func(r *procfs.Reader, i int) (a answer) {
		switch alive[i].State {
		case 'S': // the only state in which the threads matter
			a.threads, a.ok = r.Threads(&alive[i].Process)
		}
		return a
	})
	for i := range alive {
		p := &alive[i]
		w := waiter{proc: *p, cpu: p.CPUTime()}
		switch {
		case p.Running():
			w.main = isRunning
		case p.State == 'T' || p.State == 't':
			w.main = isStopped
		case p.State != 'S' || !returned[i] || !read[i].ok:
			w.main = isUnknown
		default:
			for n, t := range read[i].threads {
				c := l.classOf(&p.Process, &t)
				if n == 0 {
					w.main = c
				} else {
					w.others |= c
				}
			}
		}
		all = append(all, w)
	}
	return all
}

// The timeout of poll(2) and epoll_wait(2) that is none.
func endless(ms uint64) bool { return int32(ms) < 0 }

// classOf returns what a thread waits for.
func (l *waitLook) classOf(p *procfs.Process, t *procfs.Thread) class {
	if t.Running {
		return isRunning
	}
	if t.Narrow {
		return isUnknown
	}
	a := &t.Args
	timer := func(none bool) class {
		if none {
			return 0
		}
		return onTimer
	}
	switch waitCalls[t.Call] {
	case callRead:
		return l.classOfFile(p, int(int32(a[0])), 0)
	case callWrite:
		return l.classOfOutput(p, int(int32(a[0])))
	case callPoll:
		return l.polled(p, a[0], a[1]) | timer(endless(a[2]))
	case callPpoll:
		return l.polled(p, a[0], a[1]) | timer(a[2] == 0)
	case callSelect:
		return l.selected(p, a) | timer(a[4] == 0)
	case callEpoll:
		return l.targets(p, int(int32(a[0]))) | timer(endless(a[3]))
	case callEpoll2:
		return l.targets(p, int(int32(a[0]))) | timer(a[3] == 0)
	case callFutex:
		const private = 128 // FUTEX_PRIVATE_FLAG; any other one may be in memory that is shared with others
		if a[1]&private == 0 {
			return onExternal | timer(a[3] == 0)
		}
		return onInternal | timer(a[3] == 0)
	case callChild:
		return onChild
	case callSignal:
		return onSignal
	case callSignalWait:
		return onSignal | timer(a[2] == 0)
	case callSleep:
		return onTimer
	}
	return isUnknown
}

func (l *waitLook) polled(p *procfs.Process, at, n uint64) (c class) {
	all, ok := procfs.Polled(p.PID, at, n)
	if !ok {
		return isUnknown
	}
	for _, one := range all {
		if one.FD >= 0 {
			c |= l.classOfEvents(p, int(one.FD), uint32(uint16(one.Events)), 0)
		}
	}
	return c
}

func (l *waitLook) selected(p *procfs.Process, a *[6]uint64) (c class) {
	for i, events := range []uint32{unix.EPOLLIN, unix.EPOLLOUT, unix.EPOLLPRI} {
		all, ok := procfs.Selected(p.PID, a[1+i], a[0])
		if !ok {
			return isUnknown
		}
		for _, fd := range all {
			c |= l.classOfEvents(p, fd, events, 0)
		}
	}
	return c
}

func (l *waitLook) targets(p *procfs.Process, epoll int) (c class) {
	all, ok := l.reader.Targets(p.PID, epoll)
	if !ok {
		return isUnknown
	}
	for _, t := range all {
		one := l.classOfEvents(p, t.FD, t.Events, t.Inode)
		if one&onInput != 0 && t.Events&unix.EPOLLET != 0 {
			one |= isUnknown // what has been announced once may be there, unread
		}
		c |= one
	}
	return c
}

// classOfEvents returns what a thread waits for that waits for events of a descriptor. Those of poll(2) have the same
// numbers as those of epoll.
func (l *waitLook) classOfEvents(p *procfs.Process, fd int, events uint32, inode uint64) (c class) {
	const in, out = unix.EPOLLIN | unix.EPOLLRDNORM, unix.EPOLLOUT | unix.EPOLLWRNORM
	const flags = unix.EPOLLET | unix.EPOLLONESHOT | unix.EPOLLWAKEUP | unix.EPOLLEXCLUSIVE | unix.EPOLLERR | unix.EPOLLHUP
	events &^= uint32(flags)
	if events&in != 0 {
		c |= l.classOfFile(p, fd, inode)
	}
	if events&out != 0 {
		c |= l.classOfOutput(p, fd)
	}
	if events&^(in|out) != 0 && c&onInput == 0 { // urgent data, or that the other side hangs up
		c |= onExternal
	}
	return c
}

// classOfOutput returns what a thread waits for that cannot write to a descriptor: somebody who reads it.
func (l *waitLook) classOfOutput(p *procfs.Process, fd int) class {
	o, ok := procfs.OpenFile(p.PID, fd)
	if !ok {
		return isUnknown
	}
	if n, pipe := o.Inode("pipe"); pipe {
		if l.gather(); l.readers[n] {
			return onInternal
		}
	}
	return onExternal
}

// classOfFile returns what a thread waits for that waits for a descriptor. inode is that of the file where the
// descriptor may be another one by now, else 0.
func (l *waitLook) classOfFile(p *procfs.Process, fd int, inode uint64) class {
	o, ok := procfs.OpenFile(p.PID, fd)
	if !ok {
		return isUnknown
	}
	if l.input.Refers(p, fd, o) {
		return onInput
	}
	if n, pipe := o.Inode("pipe"); pipe {
		if inode != 0 && n != inode {
			return isUnknown
		}
		l.gather()
		if l.writers[n] {
			return onInternal
		}
		return onExternal
	}
	if n, socket := o.Inode("socket"); socket {
		l.gather()
		if peer, ok := procfs.UnixPeer(n); ok && l.sockets[peer] {
			return onInternal
		}
		return onExternal
	}
	switch o.Link {
	case "anon_inode:[eventfd]", "anon_inode:[signalfd]":
		return onInternal
	case "anon_inode:[timerfd]":
		return onTimer
	case "anon_inode:[eventpoll]":
		return l.targets(p, fd)
	}
	return onExternal // a terminal that is not the command's, inotify, a device, a lock
}

// gather reads which pipes and sockets the members have.
func (l *waitLook) gather() {
	if l.gathered {
		return
	}
	l.gathered, l.writers, l.readers, l.sockets = true, make(map[uint64]bool), make(map[uint64]bool), make(map[uint64]bool)
	for i := range l.members {
		if l.members[i].Dead() {
			continue
		}
		all, _ := procfs.OpenFiles(l.members[i].PID) // what may not be read is external, so that nothing is claimed
		for _, o := range all {
			if n, ok := o.Inode("pipe"); ok {
				l.writers[n] = l.writers[n] || o.Writes
				l.readers[n] = l.readers[n] || o.Reads
			}
			if n, ok := o.Inode("socket"); ok {
				l.sockets[n] = true
			}
		}
	}
	own, ok := procfs.OpenFiles(os.Getpid())
	for _, o := range own {
		if n, ok := o.Inode("pipe"); ok && o.Writes {
			delete(l.writers, n)
		}
	}
	if !ok { // there are too many to look at
		clear(l.writers)
	}
}

// verdict applies the rule to the processes of a tree. asks is the process that waits for input.
func verdict(all []waiter) (w Waiting, asks int) {
	certain := true
	reads := -1
	for i := range all {
		p := &all[i]
		c := p.main | p.others
		// A time counts in any thread, though runtimes of languages have threads that only look after others: a
		// thread that does something every few seconds looks the same.
		certain = certain && c&(restless|onTimer) == 0
		if c&onInput != 0 && (reads < 0 || p.Age() < all[reads].Age()) {
			reads = i
		}
	}
	if reads < 0 {
		return NotWaiting, 0
	}
	asks = all[reads].PID
	if certain {
		return InputCertainly, asks
	}
	for i := range all {
		p := &all[i]
		if p.main&onInput != 0 || p.others&onInput != 0 {
			if (p.main|p.others)&restless == 0 && quietAround(all, p.PID) {
				return InputIfPrompted, p.PID
			}
		}
	}
	return NotWaiting, 0
}

// quietAround reports whether the ancestors of a process, as far as they belong to the tree, wait for a child, and
// nothing below it runs.
func quietAround(all []waiter, pid int) bool {
	byID := make(map[int]*waiter, len(all))
	for i := range all {
		byID[all[i].PID] = &all[i]
	}
	for p, n := byID[pid], 0; p != nil && n < len(all); n++ {
		up := byID[p.Parent]
		if up != nil && (up.main|up.others)&(isRunning|isStopped|isUnknown) != 0 {
			return false
		}
		p = up
	}
	for i := range all {
		below := false
		for p, n := &all[i], 0; p != nil && n < len(all); n++ {
			if p.Parent == pid {
				below = true
				break
			}
			p = byID[p.Parent]
		}
		if below && (all[i].main|all[i].others)&restless != 0 {
			return false
		}
	}
	return true
}
