package stream

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// closeWait is the time for which a Close waits for another Close in progress. The wait is bounded because that other
// call may itself have called this one.
const closeWait = time.Second

var errClosing = errors.New("stream: the body is still being closed")

// A closer closes a body once, for the caller or for the end of the context, whichever is first.
type closer struct {
	rc    io.Closer
	begun atomic.Bool   // set by the first call of close
	done  chan struct{} // closed when err is set
	err   error
}

func newCloser(rc io.Closer) *closer { return &closer{rc: rc, done: make(chan struct{})} }

// close closes the body. If another call is closing it already, close waits for that call, for at most closeWait.
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

// stop closes the body on a goroutine of this package. It turns a panic there, which would end the process, into the
// error of the caller's Close.
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
