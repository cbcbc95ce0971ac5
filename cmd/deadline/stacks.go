//go:build unix

package main

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup"
)

// writeStacks, with --stacks, sends the processes of the command the signals that make them write their stacks to their
// stderr, before a limit stops them. It does so only to processes that the signal of the limit will reach too, because
// the request ends many of them.
func (s *supervisor) writeStacks() {
	if !s.stacks || s.killing {
		return
	}
	o, err := procgroup.Observe(context.Background(), s.cmd.process, procgroup.Activity{})
	if err != nil {
		return // the command has ended, or this system cannot list its processes
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
