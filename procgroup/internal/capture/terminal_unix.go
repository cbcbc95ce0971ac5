//go:build unix

package capture

import (
	"errors"
	"fmt"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// newTerminal makes a pseudo-terminal. The pipe reads what is written to it, and slave is the side of the command.
func newTerminal(size Size) (_ *pipe, slave *os.File, err error) {
	master, slave, err := pty.Open()
	if err != nil {
		err = fmt.Errorf("procgroup: Terminal: %w", err)
		if errors.Is(err, pty.ErrUnsupported) {
			err = fmt.Errorf("%w (%w)", err, errors.ErrUnsupported)
		}
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			slave.Close()
		}
	}()
	slave.Fd() // makes it block, in the command too; this process only keeps it open
	master, err = pollable(master)
	if err != nil {
		return nil, nil, fmt.Errorf("procgroup: Terminal: %w", err)
	}
	p, err := newPipeOf(master)
	if err != nil {
		return nil, nil, fmt.Errorf("procgroup: Terminal: %w", err)
	}
	p.holds = terminalSize
	if err := resize(master, size); err != nil {
		master.Close()
		return nil, nil, fmt.Errorf("procgroup: Terminal: %w", err)
	}
	return p, slave, nil
}

// terminalSize is more than a terminal ever holds of unread output.
const terminalSize = 128 << 10

// pollable returns f as a file that the runtime polls, and closes f: package pty leaves it blocking.
func pollable(f *os.File) (*os.File, error) {
	defer f.Close()
	g, err := duplicate(f)
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
	return duplicate(g) // os.NewFile has the runtime poll a file that is non-blocking when it is called
}

// duplicate returns another descriptor of the same file.
func duplicate(f *os.File) (*os.File, error) {
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

func resize(master *os.File, size Size) error {
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
