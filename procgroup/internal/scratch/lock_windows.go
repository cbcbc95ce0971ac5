package scratch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

const lockName = "lock"

// hold makes and locks a file in a directory, until the file is closed or the process ends. The error is errLocked if
// another process has the lock.
func hold(path string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if lock(f) != nil {
		_ = f.Close()
		return nil, errLocked
	}
	return f, nil
}

func lock(f *os.File) error {
	const one = 1
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, one, 0, new(windows.Overlapped))
}

// same returns nil: on Windows a directory with an open file cannot be removed.
func same(*os.File, string) error { return nil }

// take locks a directory until release is called, if its process has ended. In a directory without the file to lock,
// which is just being made or is empty, release does nothing. take returns an error if the process has not ended, or if
// the file cannot be opened.
func take(root *os.Root) (release func(), _ error) {
	f, err := root.OpenFile(lockName, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil
	} else if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// finish releases the lock, removes its file, closes root, and removes the directory. It ignores errors: what cannot be
// removed stays.
func finish(root *os.Root, path string, release func()) {
	release()
	_ = root.Remove(lockName)
	_ = root.Close()
	_ = os.Remove(path)
}

// mine returns true: on Windows the directory for temporary files belongs to the user.
func mine(fs.FileInfo) bool { return true }
