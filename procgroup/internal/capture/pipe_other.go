//go:build !unix && !windows

package capture

import (
	"errors"
	"os"
)

// A pipe is never made on these systems, which cannot run commands.
type pipe struct{ r *os.File }

const restEvery = 0

func newPipe() (*pipe, *os.File, error) { return nil, nil, errors.ErrUnsupported }

func (p *pipe) next(taker) error { return errors.ErrUnsupported }

func (p *pipe) rest(taker) error { return errors.ErrUnsupported }

func noReader(error) bool { return false }
