package procgroup

import (
	"errors"
	"math"
	"os/exec"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Attach prepares a command of [exec.CommandContext] so that the end of its context ends its whole process tree, and
// cmd.Wait does not block for long after that. Call Attach before the command is started; then run the command as
// usual, with cmd.Start and cmd.Wait, cmd.Run, or cmd.Output.
//
//	cmd := exec.CommandContext(ctx, "make", "-j8")
//	procgroup.Attach(cmd)
//	out, err := cmd.StdoutPipe()
//
// Attach uses Signal and Grace of [Stop], Grace of [Limits], and the containments [Group] and [Descendants]; it accepts
// no other containment. It extends SysProcAttr, so that the command gets its own process group, adds a variable to Env
// for Descendants, and sets Cancel. If WaitDelay is 0, Attach sets it to the kill grace plus half a second. If cmd.Wait
// returns before the grace is over, a goroutine kills the rest of the tree at the end of the grace.
//
// Because os/exec runs the command, Attach does less than [Run]: there are no limits and no Result, output is not a
// heartbeat, and processes of a command that ends by itself keep running. The package documentation has the details.
//
// If cmd or an option is invalid, or the file system of cmd.Dir does not answer within 5 s, Attach sets cmd.Err, which
// cmd.Start returns. Attach panics with a [*timeout.ConfigError] if cmd is nil.
func Attach(cmd *exec.Cmd, opts ...Option) {
	if cmd == nil {
		panic(&timeout.ConfigError{Key: "command", Value: "nil", Accepted: "one that is not nil"})
	}
	if cmd.Err != nil {
		return
	}
	if cmd.Cancel == nil {
		cmd.Err = errors.New("procgroup: Attach: the command was not made by exec.CommandContext")
		return
	}
	s := newSettings(opts)
	if cmd.Err = s.err; cmd.Err != nil {
		return
	}
	if s.stopSignal == syscall.SIGKILL {
		s.killGrace = 0
	}
	if dir := cmd.Dir; checksDir(cmd) {
		// checkDir gets no cmd: it may still be waiting for the file system when Attach returns.
		if cmd.Err = patient.Do(fileTime, dir, func() error { return checkDir(dir) }); cmd.Err != nil {
			return
		}
	}
	grace, err := proctree.Attach(cmd, s.kind, s.stopSignal, s.killGrace)
	if err != nil {
		cmd.Err = err
		return
	}
	if cmd.WaitDelay == 0 {
		cmd.WaitDelay = grace + min(500*time.Millisecond, math.MaxInt64-grace)
	}
}
