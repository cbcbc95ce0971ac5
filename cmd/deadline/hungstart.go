//go:build unix

package main

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// startTime is how long the start of the command may take after the end of a limit, or after a signal.
const startTime = time.Second

var errHung = errors.New("the file system does not answer")

// awaitStart returns the error of the start, or errHung if started receives none in time. Time in which deadline was
// stopped counts only towards the total limit.
func (s *supervisor) awaitStart(started <-chan error) error {
	var due time.Time // zero means never
	limit := func() {
		due = s.end
		if s.idle > 0 && (due.IsZero() || time.Until(due) > s.idle) {
			due = time.Now().Add(s.idle)
		}
		if !due.IsZero() {
			due = due.Add(startTime)
		}
	}
	limit()
	for signals, waited := s.signals, false; ; {
		var late <-chan time.Time
		if !due.IsZero() {
			late = time.After(time.Until(due))
		}
		select { // each case but the last looks at all of them again
		case err := <-started:
			return err
		case s.early = <-signals:
			signals, due = nil, time.Now().Add(startTime)
		case <-s.continued:
			s.continuedAt = time.Now()
			if s.early == nil {
				limit()
			}
		case <-late:
			if !waited && time.Since(due) >= overdue { // perhaps deadline was stopped, and SIGCONT comes now
				waited, due = true, time.Now().Add(soon)
				continue
			}
			select { // a start wins, because nobody would watch the command
			case err := <-started:
				return err
			default:
				return errHung
			}
		}
	}
}

// hung ends the process that is to become the command, and returns how the program must end.
func (s *supervisor) hung() ending {
	s.finish()
	sig, received := s.early.(syscall.Signal)
	e := ending{code: timeout.ExitTimeout, limited: !received || sig == unix.SIGALRM}
	if e.limited {
		sig = s.signal
	} else {
		e.signal = sig
	}
	if !e.limited || s.preserveStatus {
		e.code = 128 + int(sig)
	}
	s.say("failed to run command %s: %v", quote(s.command[0]), errHung)
	if !s.foreground {
		signalGroup(sig)
	}
	return e
}
