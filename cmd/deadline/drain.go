//go:build unix

package main

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
)

// drain waits until the rest of the output has been forwarded, after the command has ended. The wait has no bound
// unless the command was stopped, a limit fires meanwhile, or deadline receives a signal: then output that is not read
// within the time of -k, or outputGrace, is dropped and reported. A further signal ends the wait at once.
func (s *supervisor) drain(ctx context.Context) {
	heartbeat.Hold(ctx) // the idle limit does not apply after the command has ended
	s.out.commandEnded()
	grace := outputGrace
	if s.killAfter > 0 {
		grace = s.killAfter
	}
	limit := ctx.Done()
	var lost <-chan time.Time
	if !s.signalledAt.IsZero() {
		limit = nil // the next limit would only kill the command, which has ended
		lost = time.After(max(time.Until(s.signalledAt.Add(grace)), outputLast))
	}
	reached := false // a limit has fired, and not after a signal
	drop := func() { s.limited = s.abandon() && reached || s.limited }
	for {
		select { // after the end of the output there is nothing to drop; a limit wins over a signal
		case <-s.out.done:
			return
		case <-lost:
			drop()
			return
		case <-limit:
			reached, limit = true, nil
		case <-s.continued:
			s.continuedAt = time.Now()
			continue
		case <-s.signals:
			if lost != nil {
				drop()
				return
			}
			reached, limit = ctx.Err() != nil, nil
		}
		lost = time.After(grace)
	}
}

// abandon drops the rest of the output and reports its size in a message. It reports whether any output was dropped,
// and returns false if deadline does not forward output.
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
