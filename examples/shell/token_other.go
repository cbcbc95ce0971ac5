//go:build !unix

package main

import (
	"errors"
	"os"
)

// openPrivate fails: the modes of files say nothing here, so nothing tells a private file from another.
func openPrivate(string) (*os.File, error) {
	return nil, errors.New("HTTP needs a file that only its user can read, which cannot be checked on this system")
}
