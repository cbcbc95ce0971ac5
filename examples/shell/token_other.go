//go:build !unix

package main

import (
	"errors"
	"os"
)

// openPrivate returns an error, because on this system the mode of a file does not show whether others can read it.
func openPrivate(string) (*os.File, error) {
	return nil, errors.New("HTTP needs a file that only its user can read, which cannot be checked on this system")
}
