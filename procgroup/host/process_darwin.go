package host

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// A process is a kqueue that reports the end of a process. The runtime's poller cannot watch a kqueue, so a wait
// occupies a thread.
type process struct {
	ProcessInfo
	mu      sync.Mutex
	kq      int  // -1 once it has been closed
	waiting bool // ended is in progress
}

const wake = 1 // identifies the event with which close ends a wait

// open returns the process with the id pid. The error is errGone if there is no such process.
func open(pid int) (*process, error) {
	kq, err := unix.Kqueue()
	if err != nil {
		return nil, fmt.Errorf("host: nothing is watched: kqueue: %w", err)
	}
	unix.CloseOnExec(kq)
	changes := make([]unix.Kevent_t, 2)
	unix.SetKevent(&changes[0], wake, unix.EVFILT_USER, unix.EV_ADD|unix.EV_CLEAR)
	unix.SetKevent(&changes[1], pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	changes[1].Fflags = unix.NOTE_EXIT
	if _, err := unix.Kevent(kq, changes, nil, nil); err != nil {
		unix.Close(kq)
		if err == unix.ESRCH {
			return nil, errGone
		}
		return nil, fmt.Errorf("host: nothing is watched: kevent: %w", err)
	}
	return &process{ProcessInfo: ProcessInfo{Pid: pid}, kq: kq}, nil
}

func (p *process) ended() bool {
	p.mu.Lock()
	kq := p.kq
	p.waiting = kq >= 0
	p.mu.Unlock()
	if kq < 0 {
		return false
	}
	events := make([]unix.Kevent_t, 1)
	n, err := 0, error(unix.EINTR)
	for err == unix.EINTR {
		n, err = unix.Kevent(kq, nil, events, nil)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting, p.kq = false, -1
	unix.Close(kq)
	return err == nil && n == 1 && events[0].Filter == unix.EVFILT_PROC
}

// close closes the queue. If a wait is in progress, close only wakes it, and the wait closes the queue: otherwise the
// descriptor could be reused during the wait.
func (p *process) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.kq < 0:
	case p.waiting:
		change := make([]unix.Kevent_t, 1)
		unix.SetKevent(&change[0], wake, unix.EVFILT_USER, 0)
		change[0].Fflags = unix.NOTE_TRIGGER
		_, _ = unix.Kevent(p.kq, change, nil, nil)
	default:
		unix.Close(p.kq)
		p.kq = -1
	}
}

func (p *process) how(bool) ending      { return unknown } // the system reports it only to the parent
func (p *process) heir(ending) *process { return nil }

// find implements the function that watch describes. If named is not 0, it returns no processes between the two.
func find(named int) (*process, []*process, error) {
	if named != 0 {
		p, err := open(named)
		if p != nil {
			p.Name = look(named).name
		}
		return p, nil, err
	}
	peer, err := peerOfStdin()
	if err != nil {
		return nil, nil, err
	}
	var chain []*process
	var programs []program
	for child := os.Getpid(); ; {
		parent := parentOf(child)
		if parent <= 1 { // launchd is not a host, but adopts processes whose parent has ended
			break
		}
		p, err := open(parent)
		if err != nil {
			break // the parent runs as another user, or has ended
		}
		// If the id is still the parent's after open, it was not reused in between.
		if parentOf(child) != parent {
			p.close()
			break
		}
		seen := look(parent)
		p.Name = seen.name
		chain, programs = append(chain, p), append(programs, seen)
		child = parent
	}
	at := nearest(programs, peer)
	for _, p := range chain[at+1:] {
		p.close()
	}
	if at < 0 {
		return nil, nil, errors.New("host: nothing is watched: no ancestor looks like a host")
	}
	return chain[at], chain[:at:at], nil
}

// peerOfStdin returns the id of the process at the other end of stdin, or 0 if stdin is a pipe or the system does not
// show the process. The error is not nil if stdin is neither a pipe nor a socket.
func peerOfStdin() (int, error) {
	var info unix.Stat_t
	if err := unix.Fstat(0, &info); err != nil {
		return 0, fmt.Errorf("host: nothing is watched: stdin: %w", err)
	}
	switch info.Mode & unix.S_IFMT {
	case unix.S_IFSOCK:
		peer, _ := unix.GetsockoptInt(0, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
		return peer, nil
	case unix.S_IFIFO:
		return 0, nil
	}
	return 0, errors.New("host: nothing is watched: stdin is neither a pipe nor a socket")
}

// parentOf returns the id of the parent of a process, or 0 if the process has ended.
func parentOf(pid int) int {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0
	}
	return int(info.Eproc.Ppid)
}

// look returns the program that a process runs, as far as the system shows it.
func look(pid int) program {
	p := program{pid: pid}
	if info, err := unix.SysctlKinfoProc("kern.proc.pid", pid); err == nil {
		p.name = unix.ByteSliceToString(info.Proc.P_comm[:])
	}
	if raw, err := unix.SysctlRaw("kern.procargs2", pid); err == nil {
		p.args = parseArgs(raw)
	}
	return p
}
