//go:build !unix || aix

package terminal

import (
	"errors"
	"os"
)

// Open returns errors.ErrUnsupported.
func Open(Size) (master, slave *os.File, err error) { return nil, nil, errors.ErrUnsupported }

// Duplicate returns errors.ErrUnsupported.
func Duplicate(*os.File) (*os.File, error) { return nil, errors.ErrUnsupported }

// Resize returns errors.ErrUnsupported.
func Resize(*os.File, Size) error { return errors.ErrUnsupported }

func typeNow(*os.File, byte) error { return errors.ErrUnsupported }
