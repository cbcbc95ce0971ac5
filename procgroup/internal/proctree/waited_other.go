//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd

package proctree

import (
	"context"
	"os/exec"
	"time"
)

// A waited is a command that a goroutine waits for.
type waited struct {
	cmd  *exec.Cmd
	gone chan struct{} // closed when the leader has ended and err is set
	err  error
}

// begin begins to wait for the command, which has been started. The wait occupies a thread.
func (w *waited) begin() {
	w.gone = make(chan struct{})
	go func() {
		defer close(w.gone)
		w.err = w.cmd.Wait()
	}()
}

func (w *waited) Wait(ctx context.Context, deadline time.Time) bool {
	return waitFor(ctx, w.gone, deadline)
}

func (w *waited) State() (error, bool) {
	select {
	case <-w.gone:
		return w.err, true
	default:
		return nil, false
	}
}
