//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package scratch

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const lockName = "" // what is locked is the directory

// hold locks a directory until the file is closed or the process ends. It returns nil where the file system has no
// locks; such a directory is never taken for abandoned.
func hold(path string) (*os.File, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	err = flock(dir)
	if err == nil {
		return dir, nil
	}
	_ = dir.Close()
	if err == errLocked {
		return nil, err
	}
	return nil, nil
}

func flock(dir *os.File) error {
	err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errLocked
	}
	return err
}

// same returns an error if path is no longer the name of dir, the directory that is locked.
func same(dir *os.File, path string) error {
	is, err := dir.Stat()
	if err != nil {
		return err
	}
	want, err := os.Lstat(path)
	if err == nil && !os.SameFile(is, want) {
		err = errLocked
	}
	return err
}

// take locks a directory of a process that may have ended, until release is called.
func take(root *os.Root) (release func(), _ error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	if err := flock(dir); err != nil {
		_ = dir.Close()
		return nil, err
	}
	return func() { _ = dir.Close() }, nil
}

// finish removes the directory, which is empty, while it is locked: whoever makes it sees that it is gone.
func finish(_ *os.Root, path string, release func()) {
	_ = os.Remove(path)
	release()
}

// mine reports whether a directory is this user's, and only this user's.
func mine(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid() && info.Mode().Perm() == 0o700
}
