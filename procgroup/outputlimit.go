package procgroup

import (
	"errors"
	"sync"
)

// ErrOutput is matched by the error of a command that was stopped because it wrote too much; see
// [WithOutputLimit].
var ErrOutput = errors.New("procgroup: the command wrote too much")

// exitTooMuchOutput is the exit code of a process that SIGXFSZ has ended, as under ulimit -f.
const exitTooMuchOutput = 128 + 25

// WithOutputLimit stops the command, as a limit would, when it has written more than the given
// number of bytes to stdout and stderr together. The Reason is [TooMuchOutput], the error matches
// [ErrOutput], and the exit code is 153, like that of a program that SIGXFSZ ends under ulimit -f.
// A command that has ended by itself before its output was read is not stopped.
//
// The limit is for output that cannot be of any use, such as that of yes. Many healthy commands
// write megabytes, so it is off by default, and [WithMaxOutput] bounds memory without it. If bytes
// is negative, Start returns a [*timeout.ConfigError]; 0 means no limit.
func WithOutputLimit(bytes int64) Option {
	return optionFunc(func(s *settings) {
		s.outputLimit = bytes
		s.refuseNegative("WithOutputLimit", bytes)
	})
}

// An outputStop keeps a command from being stopped for its output once its end has begun. The
// context must not be cancelled then: the writers that still take output would be given up.
type outputStop struct {
	mu   sync.Mutex
	over bool
}

// stopForOutput stops the command because it has written too much.
func (p *Process) stopForOutput() {
	<-p.spawned // which is close: without it the processes could not be listed
	p.tooMuch.mu.Lock()
	defer p.tooMuch.mu.Unlock()
	if !p.tooMuch.over {
		p.abort(&commandStop{reason: TooMuchOutput, is: ErrOutput})
	}
}

// end returns when the command will not be stopped any more.
func (o *outputStop) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
}
