//go:build unix

package main

import (
	"context"
	"errors"
	"math"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// killTime is how long the command may take to die of SIGKILL before deadline gives up.
const killTime = time.Second

// errNextStage ends an execution so that the next one can have the limit of the kill.
var errNextStage = errors.New("signal passed on")

// moment is a hook for tests. It is called when the command has been started and its limits have not begun, and when
// the command has been sent a signal.
var moment = func(what string, command *os.Process) {}

// wait returns when the command has ended or could not be killed.
func (s *supervisor) wait() {
	moment("started", s.cmd.process)
	if _, err := timeout.Inherited(); err != nil {
		s.say("ignored: %v", err)
	}
	limits := timeout.Config{Total: s.setEnd(), Idle: s.idle, Grace: math.MaxInt64}
	for {
		begun := time.Now()
		// A kill may come after the inherited deadline, which is part of the total limit that setEnd has set.
		err := timeout.Run(context.Background(), s.watch, limits, timeout.WithoutInherited())
		if s.over {
			return
		}
		var stop *timeout.Error
		if errors.As(err, &stop) {
			if s.killGroup {
				s.abandon()
				return
			}
			if stop.Kind == timeout.ErrIdle && s.wasStopped(begun, stop) {
				limits.Total = s.untilEnd()
				continue
			}
			s.limited = true
			if stop.Kind == timeout.ErrIdle && s.verbose {
				s.say("no %v from command %s for %v", s.alive, quote(s.command[0]), stop.Limit.Round(time.Millisecond))
			}
			s.writeStacks()
			s.send(s.next())
			s.showTree() // after the signal, which it must not delay
		}
		limits = s.following(stop)
	}
}

// setEnd sets the end of the total limit, and returns the time until then, or 0 if there is no limit. The limit is
// the one of the command line or, if that is shorter, what is left until TOOL_DEADLINE in the environment.
func (s *supervisor) setEnd() (total time.Duration) {
	total = s.total
	if at, _ := timeout.Inherited(); !at.IsZero() && (total == 0 || time.Until(at) < total) {
		total = max(time.Until(at), 1)
	}
	if total > 0 {
		s.end = time.Now().Add(total)
	}
	return total
}

// wasStopped reports whether an idle limit fired only because deadline itself was stopped, as between
// Ctrl-Z and fg. SIGCONT is a beat, but the overdue timer may be faster. The longer it is overdue, the
// longer SIGCONT is waited for, since a busy machine may deliver it late.
func (s *supervisor) wasStopped(begun time.Time, stop *timeout.Error) bool {
	const soon = 100 * time.Millisecond
	fired := begun.Add(stop.Elapsed)
	if s.continuedAt.After(fired.Add(-soon)) {
		return true
	}
	late := time.Since(fired.Add(stop.Limit - stop.SinceBeat))
	if late < 10*time.Millisecond {
		return false
	}
	select {
	case <-s.continued:
		s.continuedAt = time.Now()
		return true
	case <-time.After(max(soon, min(late, time.Second))):
		return false
	}
}

// next returns the signal that a limit sends.
func (s *supervisor) next() syscall.Signal {
	if s.killing {
		return unix.SIGKILL
	}
	return s.signal
}

// untilEnd returns the rest of the total limit, or 0 if there is no limit.
func (s *supervisor) untilEnd() time.Duration {
	if s.end.IsZero() {
		return 0
	}
	return max(time.Until(s.end), 1)
}

// following returns the limits of the execution after the one that ended with stop: the time until the
// kill, if one is due, and the rest of the total. There is no idle limit after a signal.
func (s *supervisor) following(stop *timeout.Error) timeout.Config {
	if s.killGroup {
		return timeout.Config{Total: killTime, Grace: math.MaxInt64}
	}
	if stop != nil && stop.Kind == timeout.ErrTotal && !time.Now().Before(s.end) {
		s.end = time.Time{} // the total has been reached
	}
	next := timeout.Config{Total: s.untilEnd(), Grace: math.MaxInt64}
	if s.killAfter > 0 && !s.killing {
		s.killing = true
		if next.Total == 0 || s.killAfter < next.Total {
			next.Total = s.killAfter
		}
	}
	return next
}
