package scratch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

const lockName = "lock"

// hold locks a directory until the file is closed or the process ends.
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

// same returns nil: a file that is open cannot be removed.
func same(*os.File, string) error { return nil }

// take locks a directory of a process that may have ended, until release is called. A directory without a lock is
// being made, or is empty.
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

// finish removes the lock and the directory, unless somebody has opened the lock meanwhile.
func finish(root *os.Root, path string, release func()) {
	release()
	_ = root.Remove(lockName)
	_ = root.Close()
	_ = os.Remove(path)
}

// mine returns true: the directory for temporary files is the user's own.
func mine(fs.FileInfo) bool { return true }
