package stream

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// closeWait is how long a Close waits for one that runs already: it may be called by that very one.
const closeWait = time.Second

var errClosing = errors.New("stream: the body is still being closed")

// A closer closes a body once, whoever is first: the caller or the end of a limit.
type closer struct {
	rc    io.Closer
	begun atomic.Bool
	done  chan struct{} // closed when err is set
	err   error
}

func newCloser(rc io.Closer) *closer { return &closer{rc: rc, done: make(chan struct{})} }

// close closes the body or, if another call does so already, waits for that, at most for closeWait.
func (c *closer) close() error {
	if !c.begun.Swap(true) {
		defer close(c.done)
		c.err = errors.New("stream: Close of the body did not return")
		c.err = c.rc.Close()
		return c.err
	}
	timer := time.NewTimer(closeWait)
	defer timer.Stop()
	select {
	case <-c.done:
		return c.err
	case <-timer.C:
		return errClosing
	}
}

// stop closes the body on a goroutine of this package. There a panic would end the process: it becomes the error of the
// caller's Close.
func (c *closer) stop() {
	if c.begun.Swap(true) {
		return
	}
	defer close(c.done)
	c.err = errors.New("stream: Close of the body did not return")
	defer func() {
		if v := recover(); v != nil {
			c.err = fmt.Errorf("stream: Close of the body panicked: %v", v)
		}
	}()
	c.err = c.rc.Close()
}
