package procgroup

import (
	"errors"
	"math"
	"os/exec"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
)

// Attach prepares a command made by [exec.CommandContext] so that the end of its context ends
// its whole process tree, and cmd.Wait does not block for long after that. The caller then
// runs the command as usual, with cmd.Start and cmd.Wait, cmd.Run, or cmd.Output. Call Attach
// before the command is started.
//
//	cmd := exec.CommandContext(ctx, "make", "-j8")
//	procgroup.Attach(cmd)
//	out, err := cmd.StdoutPipe()
//
// Attach sets these fields of cmd:
//
//   - SysProcAttr is extended so that the command gets its own process group.
//   - Env gets one extra variable, by which descendants are found; see [Descendants].
//   - Cancel asks the tree to end, and kills it after the kill grace. On Windows it asks with
//     Ctrl-Break if the command shares the console, and kills only the process itself.
//   - WaitDelay, unless it is set, becomes the kill grace plus half a second. If cmd.Wait
//     returns before the grace is over, a goroutine kills the rest of the tree at its end.
//
// Attach uses the options [WithKillGrace], [WithStopSignal] and [WithContainment]; the only
// containments it accepts are [Group] and [Descendants]. Because os/exec runs the command,
// Attach does less than [Run]:
//
//   - There is no Result, and there are no limits: only cmd's context bounds the command.
//   - If the command ends by itself, the processes that it started keep running.
//   - Output is not a heartbeat, unless it is written to a heartbeat.Writer.
//   - The processes that are left when Wait returns are killed only if the program runs until
//     the end of the grace.
//   - Attach replaces cmd.Cancel. To add a Cancel function, call Attach first, and have the
//     new function call the one that Attach has set.
//   - cmd.Dir must exist already.
//   - cmd.Env may be changed before the call, and appended to afterwards. If it is replaced
//     afterwards, descendants outside the process group are not found. The error of Cancel
//     then says so; cmd.Wait returns that error unless the command has failed anyway.
//
// If cmd or an option is invalid, cmd.Start returns the error.
func Attach(cmd *exec.Cmd, opts ...Option) {
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
	if cmd.Err = checkDir(cmd); cmd.Err != nil {
		return
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
