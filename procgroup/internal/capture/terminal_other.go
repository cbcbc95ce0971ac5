//go:build !unix

package capture

import (
	"errors"
	"os"
)

func newTerminal(Size) (*pipe, *os.File, error) { return nil, nil, errors.ErrUnsupported }

func duplicate(*os.File) (*os.File, error) { return nil, errors.ErrUnsupported }

func resize(*os.File, Size) error { return errors.ErrUnsupported }

func typeNow(*os.File, byte) error { return errors.ErrUnsupported }
