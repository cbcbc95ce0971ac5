package host

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// A process is a pidfd, which never refers to another process that gets the same id later. The runtime's poller watches
// the pidfd, so that a wait occupies no thread.
type process struct {
	ProcessInfo
	start uint64   // the start time in /proc; 0 if it is not known
	file  *os.File // the pidfd
	conn  syscall.RawConn

	// Only identify sets these, for the host; heir uses them.
	stdin end
	exe   procfs.Executable
}

// open returns the process with the id pid. The error is errGone if there is no such process.
func open(pid int) (*process, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	switch {
	case err == unix.ESRCH:
		return nil, errGone
	case err == unix.ENOSYS || err == unix.EPERM || err == unix.EINVAL: // before Linux 5.10, or in a sandbox
		return nil, fmt.Errorf("host: nothing is watched: %w: pidfd_open: %w", errors.ErrUnsupported, err)
	case err != nil:
		return nil, fmt.Errorf("host: nothing is watched: pidfd_open: %w", err)
	}
	p := &process{ProcessInfo: ProcessInfo{Pid: pid}, file: os.NewFile(uintptr(fd), "pidfd")}
	if p.conn, err = p.file.SyscallConn(); err != nil {
		p.file.Close()
		return nil, err
	}
	// This reads another process only if the process has ended since PidfdOpen.
	if now, ok := stat(pid); ok && procIsOurs() {
		p.start = now.Start
		p.Name, _ = ask(func(r *procfs.Reader) string { return r.Name(pid) })
	}
	return p, nil
}

// identify records the other end of stdin and the executable of p, for heir.
func (p *process) identify(stdin end) {
	p.stdin = stdin
	p.exe = executable(p.Pid)
}

// executable returns the executable of a process, or the zero Executable if it cannot be read.
func executable(pid int) (exe procfs.Executable) {
	if procIsOurs() {
		exe, _ = ask(func(r *procfs.Reader) procfs.Executable { return r.Executable(pid) })
	}
	return exe
}

func (p *process) close() { p.file.Close() }

func (p *process) ended() bool { return p.await(unix.POLLIN) }

// await waits until poll(2) reports an event: POLLIN after the end of the process, or POLLHUP (Linux 6.9) after its
// parent has reaped it. It returns false if p is closed first.
func (p *process) await(event int16) bool {
	seen := false
	err := p.conn.Read(func(fd uintptr) bool {
		seen = polled(fd)&event != 0
		return seen
	})
	return err == nil && seen
}

// polled returns the events that poll(2) reports for fd now.
func polled(fd uintptr) int16 {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(poll, 0); err != unix.EINTR {
			return poll[0].Revents
		}
	}
}

// how returns how the process ended. While the process is a zombie, /proc shows it. After the parent has reaped the
// process, the pidfd reports it (Linux 6.15); on older systems it is then unknown. If wait is set and /proc does not
// show the status, how waits until the parent has reaped the process.
func (p *process) how(wait bool) ending {
	status, ok := p.reported()
	if !ok {
		status, ok = p.shown()
	}
	if !ok && wait && p.await(unix.POLLHUP) {
		status, ok = p.reported()
	} else if !ok { // the parent may have reaped the process between the calls of reported and shown
		status, ok = p.reported()
	}
	switch {
	case !ok:
		return unknown
	case status.Signaled():
		return ending{status.Signal(), -1}
	}
	return ending{nil, status.ExitStatus()}
}

// pidfdInfo is struct pidfd_info of linux/pidfd.h, in its first version.
type pidfdInfo struct {
	mask     uint64
	_        uint64
	_        [11]uint32
	exitCode int32
}

const (
	pidfdGetInfo  = 0xc040ff0b // PIDFD_GET_INFO
	pidfdInfoExit = 1 << 3
)

// reported returns the status that the pidfd reports. ok is false if it does not report the status, or not yet.
func (p *process) reported() (status syscall.WaitStatus, ok bool) {
	info := pidfdInfo{mask: pidfdInfoExit}
	err := p.conn.Control(func(fd uintptr) {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, pidfdGetInfo, uintptr(unsafe.Pointer(&info)))
		ok = errno == 0 && info.mask&pidfdInfoExit != 0
	})
	return syscall.WaitStatus(info.exitCode), ok && err == nil
}

// shown returns the status of the process in /proc while it is a zombie. It takes 0 as no status, because /proc also
// shows 0 to a reader that may not see the status.
func (p *process) shown() (syscall.WaitStatus, bool) {
	now, ok := stat(p.Pid)
	ok = ok && procIsOurs() && now.Start == p.start && now.Dead() && now.Status != 0
	return syscall.WaitStatus(now.Status), ok
}
