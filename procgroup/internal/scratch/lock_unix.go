//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package scratch

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const lockName = "" // no file: the directory itself is locked

// hold locks a directory until the file that it returns is closed or the process ends. The error is errLocked if
// another process has the lock. On a file system without locks it returns nil, nil; there no directory is ever taken
// for abandoned.
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

// same returns an error if path is no longer the path of dir, the locked directory. That happens if another process has
// removed dir before the lock was taken.
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

// take locks a directory until release is called, if its process has ended. The error is errLocked if it has not.
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

// finish removes an empty directory and then releases its lock. In this order, a process that has just made the
// directory gets the lock only once the directory is gone, and finds that out with same.
func finish(_ *os.Root, path string, release func()) {
	_ = os.Remove(path)
	release()
}

// mine reports whether a directory belongs to this user and has the mode 0700, so that no other user has access to it.
func mine(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid() && info.Mode().Perm() == 0o700
}
