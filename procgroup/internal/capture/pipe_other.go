//go:build !unix && !windows

package capture

import (
	"errors"
	"os"
)

// There are no commands on these systems.
type pipe struct{ r *os.File }

const restEvery = 0

func newPipe() (*pipe, *os.File, error) { return nil, nil, errors.ErrUnsupported }

func (p *pipe) next(taker) error { return errors.ErrUnsupported }

func (p *pipe) rest(taker) error { return errors.ErrUnsupported }

func noReader(error) bool { return false }
