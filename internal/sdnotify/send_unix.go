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

// sendTime is the longest time that Send waits for a receiver that does not read. Its queue is then full of earlier
// messages, and losing a heartbeat does not matter.
const sendTime = 100 * time.Millisecond

// Send sends the text of a message to addr, a value of NOTIFY_SOCKET. If the queue of the receiver stays full for
// sendTime, the error is os.ErrDeadlineExceeded. Send does not use package net, because registering the socket with the
// poller would take longer than sending.
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
