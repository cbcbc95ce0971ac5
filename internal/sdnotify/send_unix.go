//go:build unix && !aix

package sdnotify

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sendTime bounds a send to a receiver that does not read. Its queue is full then, and a heartbeat in it as good as this.
const sendTime = 100 * time.Millisecond

// Send sends the text of a message to addr, a value of NOTIFY_SOCKET. It waits for a receiver that does not read, but not
// for long. Package net is not used: it would have the poller watch each socket, which takes longer than to send.
func Send(addr, text string) error {
	if !strings.HasPrefix(addr, "/") && !strings.HasPrefix(addr, "@") {
		return errors.New("the address of the socket is neither a path nor an abstract name: " + addr)
	}
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	send := func(flags int) error {
		for {
			err := unix.Sendto(fd, []byte(text), flags, &unix.SockaddrUnix{Name: addr})
			if err != unix.EINTR {
				return err
			}
		}
	}
	err = send(unix.MSG_DONTWAIT)
	if err == unix.EAGAIN {
		limit := unix.NsecToTimeval(sendTime.Nanoseconds())
		if err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit); err == nil {
			err = send(0)
		}
		if err == unix.EAGAIN {
			return os.ErrDeadlineExceeded
		}
	}
	return os.NewSyscallError("sendto", err)
}
