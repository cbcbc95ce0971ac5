package waits

import (
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"golang.org/x/sys/unix"
)

// timers returns onTimer if p has timers of timer_create(2), and otherwise 0. Their signals give work to a thread that
// waits for signals.
func (l *waitLook) timers(p *procfs.Process) class {
	if l.reader.HasTimers(p.PID) {
		return onTimer
	}
	return 0
}

// polled returns the class of a thread that waits for the n entries at the address at, in poll(2): isUnknown if they
// cannot be read.
func (l *waitLook) polled(p *procfs.Process, at, n uint64) (c class) {
	all, ok := l.reader.Polled(p.PID, at, n)
	if !ok {
		return isUnknown
	}
	for _, one := range all {
		if one.FD >= 0 {
			c |= l.classOfEvents(p, int(one.FD), uint32(uint16(one.Events)))
		}
	}
	return c
}

// selected returns the class of a thread that waits in select(2) with the arguments a: isUnknown if a set cannot be
// read.
func (l *waitLook) selected(p *procfs.Process, a *[6]uint64) (c class) {
	events := make(map[int]uint32) // by descriptor: the poll(2) events of the sets that contain it
	for i, one := range []uint32{unix.EPOLLIN, unix.EPOLLOUT, unix.EPOLLPRI} {
		all, ok := l.reader.Selected(p.PID, a[1+i], a[0])
		if !ok {
			return isUnknown
		}
		for _, fd := range all {
			events[fd] |= one
		}
	}
	for fd, all := range events {
		c |= l.classOfEvents(p, fd, all)
	}
	return c
}

// targets returns the class of a thread that waits for the epoll instance of a descriptor: isUnknown if what the
// instance watches cannot be read.
func (l *waitLook) targets(p *procfs.Process, epoll int) (c class) {
	all, ok := l.reader.Targets(p.PID, epoll)
	if !ok {
		return isUnknown
	}
	for _, t := range all {
		one := class(isUnknown)
		// The descriptor may now refer to another file, or it may be one of another process, which created the epoll
		// instance.
		if inode, ok := l.reader.InodeOf(p.PID, t.FD); ok && (t.Inode == 0 || t.Inode == inode) {
			one = l.classOfEvents(p, t.FD, t.Events)
		}
		if one&onInput != 0 && t.Events&unix.EPOLLET != 0 {
			one |= isUnknown // edge-triggered: input that was announced before may still be unread
		}
		c |= one
	}
	return c
}

// classOfEvents returns the class of a thread that waits for events of a descriptor. The events are those of epoll(7),
// which have the same numbers in poll(2).
func (l *waitLook) classOfEvents(p *procfs.Process, fd int, events uint32) (c class) {
	const in, out = unix.EPOLLIN | unix.EPOLLRDNORM, unix.EPOLLOUT | unix.EPOLLWRNORM
	const flags = unix.EPOLLET | unix.EPOLLONESHOT | unix.EPOLLWAKEUP | unix.EPOLLEXCLUSIVE | unix.EPOLLERR | unix.EPOLLHUP
	events &^= uint32(flags)
	if events&in != 0 {
		c |= l.classOfFile(p, fd)
	}
	if events&out != 0 {
		c |= l.classOfOutput(p, fd)
	}
	if events&^(in|out) != 0 && c&onInput == 0 { // such as urgent data, or the hangup of the other side
		c |= onExternal
	}
	return c
}

// classOfOutput returns the class of a thread that waits until it can write to a descriptor: onInternal if the
// descriptor is a pipe that a member can read, and otherwise onExternal or isUnknown.
func (l *waitLook) classOfOutput(p *procfs.Process, fd int) class {
	o, ok := l.reader.OpenFile(p.PID, fd)
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

// classOfFile returns the class of a thread that waits until it can read from a descriptor.
func (l *waitLook) classOfFile(p *procfs.Process, fd int) class {
	o, ok := l.reader.OpenFile(p.PID, fd)
	if !ok {
		return isUnknown
	}
	if l.reader.Refers(l.input, p, fd, o) {
		return onInput
	}
	if n, pipe := o.Inode("pipe"); pipe {
		l.gather()
		if l.writers[n] {
			return onInternal
		}
		return onExternal
	}
	if n, socket := o.Inode("socket"); socket {
		l.gather()
		if peer, ok := l.reader.UnixPeer(n); ok && l.sockets[peer] {
			return onInternal
		}
		return onExternal
	}
	switch o.Link {
	case "anon_inode:[eventfd]":
		if l.gather(); l.rings[p.PID] { // an io_uring may report external events through an eventfd
			return onExternal
		}
		return onInternal
	case "anon_inode:[signalfd]":
		return onInternal | l.timers(p)
	case "anon_inode:[timerfd]":
		return onTimer
	case "anon_inode:[eventpoll]":
		return l.targets(p, fd)
	}
	return onExternal // a terminal that is not the command's, inotify, a device, a lock
}

// gather reads which pipes, sockets and io_urings the members have. It does so only once.
func (l *waitLook) gather() {
	if l.gathered {
		return
	}
	l.gathered, l.writers, l.readers, l.sockets = true, make(map[uint64]bool), make(map[uint64]bool), make(map[uint64]bool)
	l.rings = make(map[int]bool)
	for i := range l.members {
		if l.members[i].Dead() {
			continue
		}
		all, _ := l.reader.OpenFiles(l.members[i].PID) // a file that cannot be read counts as external
		for _, o := range all {
			if n, ok := o.Inode("pipe"); ok {
				l.writers[n] = l.writers[n] || o.Writes
				l.readers[n] = l.readers[n] || o.Reads
			}
			if n, ok := o.Inode("socket"); ok {
				l.sockets[n] = true
			}
			if o.Link == "anon_inode:[io_uring]" {
				l.rings[l.members[i].PID] = true
			}
		}
	}
	own, ok := l.reader.OpenFiles(l.self)
	for _, o := range own {
		if n, ok := o.Inode("pipe"); ok && o.Writes {
			delete(l.writers, n)
		}
	}
	if !ok { // this process may be able to write to any of the pipes
		clear(l.writers)
	}
}
