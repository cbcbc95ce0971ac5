//go:build unix

package main

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
)

// drain waits until the rest of the output has been passed on, once the command has ended. The wait has
// no bound unless the command was stopped, a limit is reached meanwhile, or a signal comes: then output
// that is not read within a grace is lost, and reported as lost. A further signal ends the wait at once.
func (s *supervisor) drain(ctx context.Context) {
	heartbeat.Hold(ctx) // the command has ended, so silence is not its fault
	s.out.commandEnded()
	grace := outputGrace
	if s.killAfter > 0 {
		grace = s.killAfter
	}
	limit := ctx.Done()
	var lost <-chan time.Time
	if !s.signalledAt.IsZero() {
		limit = nil // the next limit would only be the kill
		lost = time.After(max(time.Until(s.signalledAt.Add(grace)), outputLast))
	}
	reached := false
	for {
		select {
		case <-s.out.done:
			return
		case <-lost:
			s.limited = s.abandon() && reached || s.limited
			return
		case <-limit:
			reached, limit = true, nil
		case <-s.continued:
			s.continuedAt = time.Now()
			continue
		case <-s.signals:
			if lost != nil {
				s.abandon()
				return
			}
			limit = nil
		}
		lost = time.After(grace)
	}
}

// abandon drops the rest of the output and writes its size in a message. It reports whether any output
// was lost.
func (s *supervisor) abandon() bool {
	if s.out == nil {
		return false
	}
	lost := s.out.abandon()
	if lost > 0 {
		s.fail("lost %d bytes of output of command %s, which nobody read in time", lost, quote(s.command[0]))
	}
	return lost > 0
}
