package procgroup

import "errors"

// ErrOutput is matched by the error of a command that was stopped because it wrote too much; see
// [Capture].
var ErrOutput = errors.New("procgroup: the command wrote too much")

// exitTooMuchOutput is the exit code of a process that SIGXFSZ has ended, as under ulimit -f.
const exitTooMuchOutput = 128 + 25

// stopForOutput stops the command because it has written too much. It comes too late if the command has ended.
func (p *Process) stopForOutput() {
	<-p.spawned // which is close: without it the processes could not be listed
	p.abort(&commandStop{reason: TooMuchOutput, is: ErrOutput})
}
