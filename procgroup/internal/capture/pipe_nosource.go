//go:build !unix

package capture

import (
	"errors"
	"io"
	"os"
)

func (p *pipe) close() { p.r.Close() }

// newPipeFrom returns errors.ErrUnsupported: simulations run on Unix only.
func newPipeFrom(Source) (*pipe, io.WriteCloser, error) { return nil, nil, errors.ErrUnsupported }

// newPipeOf returns errors.ErrUnsupported: it is for terminals, which a command can have on Unix only.
func newPipeOf(*os.File, int) (*pipe, error) { return nil, errors.ErrUnsupported }
