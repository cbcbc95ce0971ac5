//go:build unix

package main

import (
	"fmt"
	"os"
	"syscall"
)

// openPrivate opens a file, and returns an error if other users can read or write it. It checks the opened file,
// because the path may lead to another file a moment later.
func openPrivate(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		if info, lerr := os.Lstat(path); lerr == nil && info.Mode()&os.ModeSymlink != 0 {
			err = fmt.Errorf("%s is a symbolic link: name the file itself", path)
		}
		return nil, err
	}
	info, err := file.Stat()
	if err == nil {
		switch s, _ := info.Sys().(*syscall.Stat_t); {
		case !info.Mode().IsRegular():
			err = fmt.Errorf("%s is not a regular file", path)
		case info.Mode().Perm()&0o077 != 0:
			err = fmt.Errorf("%s has mode %#o, so that others can read or write it: want 0600. Its token may be known; remove the file to have another one made", path, info.Mode().Perm())
		case s == nil || int(s.Uid) != os.Geteuid():
			err = fmt.Errorf("%s does not belong to the user of this program", path)
		}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
