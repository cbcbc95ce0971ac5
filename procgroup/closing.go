package procgroup

import (
	"context"
	"os"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// WithClosingSignal sends sig to each process of the tree, once, when the execution of the command is
// closing: no more than the reserve is left of its total, of an enclosing total or of the caller's
// deadline; see [timeout.Closing]. The reserve is that of [WithLimits], or that of an enclosing
// execution. A command that handles sig can write what it has and end by itself before the limit
// stops it. Nothing is sent at or after that limit, or after the end of the command.
//
//	procgroup.Run(ctx, cmd, procgroup.WithClosingSignal(os.Interrupt),
//		procgroup.WithLimits(timeout.Config{Total: 10 * time.Minute, Reserve: 30 * time.Second}))
//
// The signal does not stop the command: if the command dies of it, the Reason is [Exited], and the
// exit code is 128 plus the number of the signal, as with [Process.Signal]. Stopped processes are not
// continued. If the execution is already closing when the command is started, the command gets the
// signal right after the start.
//
// On Windows, [os.Interrupt] and SIGTERM both mean Ctrl-Break, which a command gets only if it shares a
// console with the host.
//
// If sig is nil, not a signal of the system, or one that no program can handle, such as [os.Kill],
// Start returns a [*timeout.ConfigError].
func WithClosingSignal(sig os.Signal) Option {
	return optionFunc(func(s *settings) { s.closing = &sig })
}

// checkClosing is checked after all options, because the last one applies.
func (s *settings) checkClosing() error {
	if s.closing == nil {
		return nil
	}
	if number, ok := signalNumber(*s.closing); ok && number != 0 && canHandle(number) {
		return nil
	}
	return &timeout.ConfigError{Key: "WithClosingSignal", Value: signalText(*s.closing), Accepted: "a " + someSignals + " that a program can handle"}
}

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
				_ = p.Signal(*p.closing)
			}
		}
	}()
	return func() {
		close(over)
		<-done
	}
}
