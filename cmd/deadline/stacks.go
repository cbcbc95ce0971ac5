//go:build unix

package main

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup"
)

// writeStacks has the programs of the command that a limit is about to stop write their stacks, with --stacks. They
// write to their own streams. Only processes that the signal of the limit will reach are asked, because most of them
// end by it.
func (s *supervisor) writeStacks() {
	if !s.stacks || s.killing {
		return
	}
	o, err := procgroup.Observe(context.Background(), s.cmd.process, procgroup.Activity{})
	if err != nil {
		return // the command has ended, or the system has no way
	}
	defer o.Stop()
	group := unix.Getpgrp()
	asked := o.WriteStacks(func(pid int) bool {
		if pid == s.cmd.process.Pid {
			return true
		}
		of, err := unix.Getpgid(pid)
		return !s.foreground && err == nil && of == group
	})
	if asked && s.verbose {
		s.say("had command %s write its stacks", quote(s.command[0]))
	}
}
