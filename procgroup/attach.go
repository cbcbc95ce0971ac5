package procgroup

import (
	"errors"
	"math"
	"os/exec"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
)

// Attach prepares a command of [exec.CommandContext] that the caller goes on to drive
// with cmd.Start and cmd.Wait, or cmd.Run, cmd.Output and so on, so that the end of its
// context ends its whole tree and cmd.Wait is bounded. Call it before the start.
//
//	cmd := exec.CommandContext(ctx, "make", "-j8")
//	procgroup.Attach(cmd)
//	out, err := cmd.StdoutPipe()
//
// It sets what os/exec has for this: SysProcAttr, extended for a process group; Env, with
// a variable by which descendants are found, as for [Descendants]; Cancel, which asks the
// tree to end and, after the kill grace, kills it; and WaitDelay, unless it is set, so
// that Wait is over half a second after the grace. If Wait returns before, what is left
// of the tree is still killed at the end of the grace, by a goroutine that lives until
// then. On Windows, Cancel asks with Ctrl-Break, where the command shares the
// console, and kills the process alone.
//
// Of the options it uses [WithKillGrace], [WithStopSignal] and [WithContainment], of which
// only Auto, Group and Descendants are possible. [Run] does more; what is not to be had here,
// because os/exec decides it:
//
//   - There is no Result, and there are no limits: cmd's context is the only one.
//   - A command that ends by itself leaves running what it has started.
//   - Output is no heartbeat, unless it is written to heartbeat.Writer.
//   - What Wait leaves behind is killed only if the program goes on for as long as the grace.
//   - A Cancel of the caller's own is replaced: call Attach first, and call what it has set.
//   - cmd.Dir has to be there already.
//   - Change cmd.Env before Attach or append to it. If it is assigned afterwards, descendants
//     outside the process group are not found; the error of Cancel then says so, which
//     cmd.Wait returns unless the command has failed anyway.
//
// What is wrong with cmd or the options is the error of cmd.Start.
func Attach(cmd *exec.Cmd, opts ...Option) {
	if cmd.Err != nil {
		return
	}
	if cmd.Cancel == nil {
		cmd.Err = errors.New("procgroup: Attach needs a command of exec.CommandContext")
		return
	}
	s := newSettings(opts)
	if s.err != nil {
		cmd.Err = s.err
		return
	}
	if s.stopSignal == syscall.SIGKILL {
		s.killGrace = 0
	}
	if cmd.Err = checkDir(cmd); cmd.Err != nil {
		return
	}
	grace, err := proctree.Attach(cmd, proctree.Kind(s.containment), s.stopSignal, s.killGrace)
	if err != nil {
		cmd.Err = err
		return
	}
	if cmd.WaitDelay == 0 {
		cmd.WaitDelay = grace + min(500*time.Millisecond, math.MaxInt64-grace)
	}
}
