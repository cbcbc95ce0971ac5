package waits

import (
	"encoding/binary"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// A waitCall is a kind of system calls that may wait. Its arguments tell what it waits for.
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

// A class is the set of the things that a thread waits for.
type class uint16

const (
	onInput    class = 1 << iota // the command's input
	onTimer                      // a time, perhaps in addition to something else
	onChild                      // a child process
	onInternal                   // another thread or process of the tree
	onSignal                     // a signal
	onExternal                   // anything that others may end: a connection, a file that changes, a lock
	isRunning                    // the thread does not wait, or waits for a disk
	isStopped                    // a signal or a debugger has stopped the thread
	isUnknown                    // the wait cannot be read, or is not understood
)

// A waitLook classifies the threads of a tree at one moment.
type waitLook struct {
	reader   waitQuestions // nobody waits for such a look
	patience *procfs.Patience
	self     int // the id of this process
	input    procfs.File
	members  []procfs.Process
	writers  map[uint64]bool // inodes of pipes that a member can write to, and this process cannot
	readers  map[uint64]bool // inodes of pipes that a member can read
	sockets  map[uint64]bool // inodes of sockets that members have
	rings    map[int]bool    // processes that have an io_uring
	gathered bool
}

// A waiter is a process with the classes of its threads.
type waiter struct {
	procfs.Process
	main, others class
	cpu          time.Duration
}

// waitQuestions are the methods of a [procfs.Reader] that say what a thread waits for. A test answers from a recording.
type waitQuestions interface {
	HasTimers(pid int) bool
	InodeOf(pid, fd int) (inode uint64, ok bool)
	Memory(pid int, at uint64, buf []byte) bool
	OpenFile(pid, fd int) (procfs.Open, bool)
	OpenFiles(pid int) ([]procfs.Open, bool)
	Polled(pid int, at, n uint64) ([]procfs.PollFD, bool)
	Refers(f procfs.File, p *procfs.Process, fd int, o procfs.Open) bool
	Selected(pid int, at, n uint64) ([]int, bool)
	Targets(pid, epoll int) ([]procfs.Target, bool)
	UnixPeer(inode uint64) (peer uint64, ok bool)
}

// An atWork is a member with its threads, as they were read at one moment.
type atWork struct {
	procfs.Process
	cpu      time.Duration // read before the threads: a thread that runs afterwards uses more
	threads  []procfs.Thread
	ok       bool // the threads could be read
	returned bool // the read has returned in time
}

// look reads the threads of the members, zombies left out.
func (l *waitLook) look() (all []atWork) {
	for _, p := range l.members {
		if !p.Dead() {
			all = append(all, atWork{Process: p, cpu: p.CPUTime()})
		}
	}
	read, returned := procfs.Gather(l.patience, len(all), func(r *procfs.Reader, i int) (a atWork) {
		if all[i].State == 'S' { // the only state in which the threads matter
			a.threads, a.ok = r.Threads(&all[i].Process)
		}
		return a
	})
	for i := range all {
		all[i].threads, all[i].ok, all[i].returned = read[i].threads, read[i].ok, returned[i]
	}
	return all
}

// classify returns what the threads of the members wait for.
func (l *waitLook) classify(read []atWork) (all []waiter) {
	for i := range read {
		p := &read[i]
		w := waiter{Process: p.Process, cpu: p.cpu}
		switch {
		case p.Running() || !p.returned:
			w.main = isRunning
		case p.State == 'T' || p.State == 't':
			w.main = isStopped
		case p.State != 'S' || !p.ok:
			w.main = isUnknown
		default:
			for n, t := range p.threads {
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
	childless(all)
	return all
}

// childless adds isUnknown to the processes that wait for a child but have no child listed. Such a child is about to
// end, which takes long on a busy machine and during which a control group no longer lists it, or is not of the tree.
func childless(all []waiter) {
	parents := make(map[int]bool, len(all))
	for i := range all {
		parents[all[i].Parent] = true
	}
	for i := range all {
		if p := &all[i]; (p.main|p.others)&onChild != 0 && !parents[p.PID] {
			p.others |= isUnknown
		}
	}
}

// endless reports whether ms, the timeout of a poll(2) or epoll_wait(2), means no timeout.
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
		return l.classOfFile(p, int(int32(a[0])))
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
		const private = 128 // FUTEX_PRIVATE_FLAG; any other futex may be in shared memory
		if a[1]&private == 0 {
			return onExternal | timer(a[3] == 0)
		}
		return onInternal | timer(a[3] == 0 || a[1] == private && l.isSysmon(p.PID, a[3]))
	case callChild:
		return onChild
	case callSignal:
		return onSignal
	case callSignalWait:
		return onSignal | timer(a[2] == 0) | l.timers(p)
	case callSleep:
		return onTimer
	}
	return isUnknown
}

// isSysmon reports whether a thread waits for as long as the thread that looks after the others in a Go program:
// 60 s to the nanosecond, from the moment of the call, which libraries of C hardly say (they name the moment of
// the end). It waits that long only while no timer of the program is due earlier; later ones show in the epoll of
// another thread.
func (l *waitLook) isSysmon(pid int, at uint64) bool {
	var time [16]byte
	return l.reader.Memory(pid, at, time[:]) && binary.NativeEndian.Uint64(time[:]) == 60 && binary.NativeEndian.Uint64(time[8:]) == 0
}
