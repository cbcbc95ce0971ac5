//go:build !unix

package capture

import (
	"errors"
	"io"
)

func (p *pipe) close() { p.r.Close() }

// newPipeFrom makes no pipe: there are simulations on Unix only.
func newPipeFrom(Source) (*pipe, io.WriteCloser, error) { return nil, nil, errors.ErrUnsupported }
