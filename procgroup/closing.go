package procgroup

import (
	"context"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// watchClosing sends the closing signal when ctx, the context of the command's execution, is closing.
// After the call of stop nothing is sent.
func (p *Process) watchClosing(ctx context.Context) (stop func()) {
	if p.closing == nil {
		return func() {}
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-timeout.Closing(ctx):
		case <-ctx.Done():
			return
		case <-over:
			return
		}
		// If several are ready, select takes any of them: the limit and the end win.
		select {
		case <-over:
		default:
			if ctx.Err() == nil {
				// There is nobody to tell of an error: the command has ended, or cannot be asked.
				_ = p.Signal(p.closing)
			}
		}
	}()
	return func() {
		close(over)
		<-done
	}
}
