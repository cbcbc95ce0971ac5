//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package proctree

import (
	"fmt"
	"os/exec"
	"syscall"
)

// LeadTerminal extends the attributes of cmd, in a copy, so that it leads a session whose terminal is its standard input.
// With orphans it leads a session without a terminal: the system ends the foreground of a terminal (SIGHUP) when the
// leader of its session ends, and in most commands everything is in the foreground.
func LeadTerminal(cmd *exec.Cmd, orphans bool) error {
	var attr syscall.SysProcAttr
	if cmd.SysProcAttr != nil {
		attr = *cmd.SysProcAttr
	}
	for _, field := range []struct {
		name string
		set  bool
	}{{"Setpgid", attr.Setpgid}, {"Foreground", attr.Foreground}, {"Setctty", attr.Setctty}, {"Noctty", attr.Noctty}} {
		if field.set {
			return fmt.Errorf("procgroup: SysProcAttr.%s is set, but in a terminal of its own the command leads a session of its own", field.name)
		}
	}
	attr.Setsid, attr.Setctty, attr.Ctty = true, !orphans, 0
	cmd.SysProcAttr = &attr
	return nil
}
