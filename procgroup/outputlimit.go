package procgroup

import "errors"

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

// stopForOutput stops the command because it has written too much. It comes too late if the command has ended.
func (p *Process) stopForOutput() {
	<-p.spawned // which is close: without it the processes could not be listed
	p.abort(&commandStop{reason: TooMuchOutput, is: ErrOutput})
}
