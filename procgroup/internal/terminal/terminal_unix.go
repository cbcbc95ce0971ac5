//go:build unix

package terminal

import (
	"errors"
	"fmt"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Open makes a pseudo-terminal. The master is this process's side, and polled by the runtime; the slave is the
// command's side.
func Open(size Size) (master, slave *os.File, err error) {
	master, slave, err = pty.Open()
	if errors.Is(err, pty.ErrUnsupported) {
		err = fmt.Errorf("%w (%w)", err, errors.ErrUnsupported)
	}
	if err != nil {
		return nil, nil, err
	}
	slave.Fd() // makes it block, in the command too; this process only keeps it open
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

// pollable returns f as a file that the runtime polls, and closes f: package pty leaves it blocking.
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
	return Duplicate(g) // os.NewFile has the runtime poll a file that is non-blocking when it is called
}

// Duplicate returns another descriptor of the same file.
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

// Resize changes the size of a terminal. The error is os.ErrClosed once it has been closed.
func Resize(master *os.File, size Size) error {
	return control(master, func(fd int) error {
		return os.NewSyscallError("ioctl", unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols}))
	})
}

// typeNow writes one byte, if that does not have to wait. It does not wait for a Write in progress either, which may
// be waiting for the command.
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
