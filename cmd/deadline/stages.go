//go:build unix

package main

import (
	"context"
	"errors"
	"math"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// killTime is how long deadline waits for the end of the command after SIGKILL.
const killTime = time.Second

// wait runs executions, and sends the signals of their limits, until the command has ended or could not be killed.
func (s *supervisor) wait() {
	moment("started", s.cmd.process)
	if _, err := timeout.Inherited(); err != nil {
		s.say("ignored: %v", err)
	}
	limits := timeout.Config{Total: s.setEnd(), Idle: s.idle, Grace: math.MaxInt64}
	for {
		begun := time.Now()
		// The inherited deadline is part of the total of setEnd. It must not stop a later execution, before the kill.
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

// setEnd sets s.end, and returns the time until then, or 0 if there is no total limit. The limit is DURATION or the
// time left until TOOL_DEADLINE in the environment, whichever is shorter.
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

const (
	// overdue is how late a timer must be for deadline to suppose that it was stopped.
	overdue = 10 * time.Millisecond
	// soon is the least time in which SIGCONT is then delivered.
	soon = 100 * time.Millisecond
)

// wasStopped reports whether an idle limit fired only because deadline itself was stopped, as between Ctrl-Z and fg.
// SIGCONT is a heartbeat, but the overdue timer of the limit may fire before SIGCONT is delivered. If the timer was
// late, wasStopped therefore waits for SIGCONT, up to a second.
func (s *supervisor) wasStopped(begun time.Time, stop *timeout.Error) bool {
	fired := begun.Add(stop.Elapsed)
	if s.continuedAt.After(fired.Add(-soon)) {
		return true
	}
	late := time.Since(fired.Add(stop.Limit - stop.SinceBeat))
	if late < overdue {
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

// next returns the signal to send when a limit fires.
func (s *supervisor) next() syscall.Signal {
	if s.killing {
		return unix.SIGKILL
	}
	return s.signal
}

// untilEnd returns the time until the end of the total limit, at least 1 ns, or 0 if there is no limit.
func (s *supervisor) untilEnd() time.Duration {
	if s.end.IsZero() {
		return 0
	}
	return max(time.Until(s.end), 1)
}

// following returns the limits of the next execution, after a signal. stop is how the last execution was stopped, or
// nil if a signal from outside was forwarded. The total is the time until the kill, if there is to be one, or until the
// end of the total limit, whichever is shorter. There is no idle limit.
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
