//go:build !unix

package capture

import (
	"errors"
	"io"
	"os"
)

func (p *pipe) close() { p.r.Close() }

// newPipeFrom returns errors.ErrUnsupported: there are simulations on Unix only.
func newPipeFrom(Source) (*pipe, io.WriteCloser, error) { return nil, nil, errors.ErrUnsupported }

// newPipeOf returns errors.ErrUnsupported: a command has a terminal on Unix only.
func newPipeOf(*os.File, int) (*pipe, error) { return nil, errors.ErrUnsupported }
