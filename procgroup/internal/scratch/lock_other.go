//go:build !darwin && !dragonfly && !freebsd && !linux && !netbsd && !openbsd && !windows

package scratch

import (
	"errors"
	"io/fs"
	"os"
)

const lockName = ""

// hold locks nothing and returns nil. On these systems no directory is ever taken for abandoned.
func hold(string) (*os.File, error) { return nil, nil }

func same(*os.File, string) error { return nil }

func take(*os.Root) (release func(), _ error) { return nil, errors.ErrUnsupported }

func finish(*os.Root, string, func()) {}

func mine(fs.FileInfo) bool { return false }
