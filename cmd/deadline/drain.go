//go:build unix

package main

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
)

// What is left of the output once the command has ended.

// drain waits until the output has been passed on, once the command has ended. There is
// no bound to that unless the command was stopped, or a limit comes now, or a signal: what
// is not taken within a grace then is lost, and said to be. The next signal ends it at once.
func (s *supervisor) drain(ctx context.Context) {
	heartbeat.Hold(ctx) // the command cannot write any more, so silence is no fault of its
	s.out.commandEnded()
	grace := outputGrace
	if s.killAfter > 0 {
		grace = s.killAfter
	}
	limit := ctx.Done()
	var lost <-chan time.Time
	if !s.signalledAt.IsZero() {
		limit = nil // what comes next is only the kill
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
			s.runAgain()
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

// abandon drops the rest of the output, and says how much that is. It reports whether
// it is anything.
func (s *supervisor) abandon() bool {
	if s.out == nil {
		return false
	}
	lost := s.out.abandon()
	if lost > 0 {
		s.fail("lost %d bytes of output of command %s, which nobody has taken in time", lost, quote(s.command[0]))
	}
	return lost > 0
}
