//go:build unix && !aix

package terminal

import (
	"errors"
	"fmt"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Open makes a pseudo-terminal. master is the side of this process, which the runtime polls. slave is the side of the
// command. Where pseudo-terminals are not supported, the error matches errors.ErrUnsupported.
func Open(size Size) (master, slave *os.File, err error) {
	master, slave, err = pty.Open()
	if errors.Is(err, pty.ErrUnsupported) {
		err = fmt.Errorf("%w (%w)", err, errors.ErrUnsupported)
	}
	if err != nil {
		return nil, nil, err
	}
	slave.Fd() // makes it blocking, for the command too; this process does not read or write it
	if master, err = pollable(master); err == nil {
		if err = Resize(master, size); err != nil {
			master.Close()
		}
	}
	if err != nil {
		slave.Close()
		return nil, nil, err
	}
	return master, slave, nil
}

// pollable returns a duplicate of f that the runtime polls, and closes f, which package pty has left blocking.
func pollable(f *os.File) (*os.File, error) {
	defer f.Close()
	g, err := Duplicate(f)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	raw, err := g.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cerr error
	if err := raw.Control(func(fd uintptr) { cerr = unix.SetNonblock(int(fd), true) }); err != nil || cerr != nil {
		return nil, errors.Join(err, cerr)
	}
	return Duplicate(g) // os.NewFile makes the runtime poll a descriptor that is already non-blocking
}

// Duplicate returns a new descriptor of the same file, which is closed on exec. If f is non-blocking, the runtime polls
// the duplicate.
func Duplicate(f *os.File) (*os.File, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd, cerr := -1, error(nil)
	if err := raw.Control(func(old uintptr) { fd, cerr = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) }); err != nil || cerr != nil {
		return nil, errors.Join(err, os.NewSyscallError("fcntl", cerr))
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// Resize changes the size of a terminal. The error is os.ErrClosed once master has been closed.
func Resize(master *os.File, size Size) error {
	return control(master, func(fd int) error {
		return os.NewSyscallError("ioctl", unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols}))
	})
}

// typeNow writes one byte without waiting, or returns an error. It does not wait for a concurrent Write either, which
// may be waiting until the command reads.
func typeNow(master *os.File, b byte) error {
	return control(master, func(fd int) error {
		_, err := unix.Write(fd, []byte{b})
		return os.NewSyscallError("write", err)
	})
}

func control(f *os.File, do func(fd int) error) (err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	if raw.Control(func(fd uintptr) { err = do(int(fd)) }) != nil {
		return os.ErrClosed
	}
	return err
}
