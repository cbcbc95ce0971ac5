package waits

import (
	"encoding/binary"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// A class is a set: it has a bit for each thing that a thread, or any of several threads, waits for.
type class uint16

const (
	onInput    class = 1 << iota // the command's input
	onTimer                      // a timeout, perhaps in addition to something else
	onChild                      // a child process
	onInternal                   // another thread or process of the tree
	onSignal                     // a signal
	onExternal                   // something outside the tree, such as a connection, a change of a file, or a lock
	isRunning                    // the thread does not wait, or waits for a disk
	isStopped                    // a signal or a debugger has stopped the thread
	isUnknown                    // the wait cannot be read, or is not understood
)

// A waitLook classifies the threads of a tree at one moment.
type waitLook struct {
	reader   waitQuestions // may block for ever, because nobody waits for a waitLook
	patience *procfs.Patience
	self     int         // the id of this process
	input    procfs.File // the command's input
	members  []procfs.Process
	writers  map[uint64]bool // inodes of pipes that a member can write to, and this process cannot
	readers  map[uint64]bool // inodes of pipes that a member can read
	sockets  map[uint64]bool // inodes of sockets that members have
	rings    map[int]bool    // processes that have an io_uring
	gathered bool            // gather has filled the maps
}

// A waiter is a process with the union of the classes of its threads.
type waiter struct {
	procfs.Process
	class class
	cpu   time.Duration
}

// waitQuestions has the methods of [procfs.Reader] that a waitLook uses. Tests implement it with recorded results.
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
	returned bool // the read of the threads has returned in time
}

// look reads the threads of all members except zombies.
func (l *waitLook) look() (all []atWork) {
	for _, p := range l.members {
		if !p.Dead() {
			all = append(all, atWork{Process: p, cpu: p.CPUTime()})
		}
	}
	read, returned := procfs.Gather(l.patience, len(all), func(r *procfs.Reader, i int) (a atWork) {
		if all[i].State == 'S' { // in another state, classify does not use the threads
			a.threads, a.ok = r.Threads(&all[i].Process)
		}
		return a
	})
	for i := range all {
		all[i].threads, all[i].ok, all[i].returned = read[i].threads, read[i].ok, returned[i]
	}
	return all
}

// classify returns the processes in read with the classes of their threads.
func (l *waitLook) classify(read []atWork) (all []waiter) {
	for i := range read {
		p := &read[i]
		w := waiter{Process: p.Process, cpu: p.cpu}
		switch {
		case p.Running() || !p.returned:
			w.class = isRunning
		case p.State == 'T' || p.State == 't':
			w.class = isStopped
		case p.State != 'S' || !p.ok:
			w.class = isUnknown
		default:
			for _, t := range p.threads {
				w.class |= l.classOf(&p.Process, &t)
			}
		}
		all = append(all, w)
	}
	childless(all)
	return all
}

// childless adds isUnknown to the processes that wait for a child but have none in all. Either the child is not a
// member of the tree, or it is exiting: a control group does not list it then, and on a busy machine an exit takes
// long.
func childless(all []waiter) {
	parents := make(map[int]bool, len(all))
	for i := range all {
		parents[all[i].Parent] = true
	}
	for i := range all {
		if p := &all[i]; p.class&onChild != 0 && !parents[p.PID] {
			p.class |= isUnknown
		}
	}
}

// endless reports whether ms, the timeout of a poll(2) or epoll_wait(2), means no timeout.
func endless(ms uint64) bool { return int32(ms) < 0 }

// classOf returns the class of a thread of p.
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

// isSysmon reports whether the timeout at an address is that of sysmon, the thread of the Go runtime that monitors the
// others: a duration of exactly 60 s. C libraries hardly use such a timeout, because they pass absolute times. sysmon
// waits that long only while no timer of the program is due earlier; a later timer shows in the epoll of another
// thread.
func (l *waitLook) isSysmon(pid int, at uint64) bool {
	var time [16]byte
	return l.reader.Memory(pid, at, time[:]) && binary.NativeEndian.Uint64(time[:]) == 60 && binary.NativeEndian.Uint64(time[8:]) == 0
}
