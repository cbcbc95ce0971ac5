//go:build unix

package simulate_test

import (
	"errors"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// These rules are about how a command ends, and what it hears of that.

// Guarantee 5: a signal of the caller's reaches nobody once the command has ended by itself.
func signalsEnd(s *seen) {
	stop, ok := s.stopTime()
	if s.res == nil || !ok || s.res.Reason != procgroup.Exited || s.Late > 0 {
		return
	}
	for _, sent := range s.m.Sent {
		if sent.Signal != syscall.SIGKILL && sent.At.After(stop) {
			s.bad("process %d got %v %v after the end", sent.Pid, sent.Signal, sent.At.Sub(stop))
		}
	}
}

// Guarantee 2: the error has how the command's own process has ended.
func ownEnd(s *seen) {
	if s.res == nil || len(s.res.Survivors) > 0 || s.m.LeaderEnded().IsZero() {
		return
	}
	var end EndError
	_ = errors.As(s.err, &end)
	if code := s.m.Code(); end.Code != code {
		s.bad("the error has the code %d of the process, which was %d: %v", end.Code, code, s.err)
	}
}

// Guarantee 1: a limit of an enclosing execution is a timeout of the command, with the command's name and that limit. The
// enclosing execution has that outcome, too.
func enclosed(s *seen) {
	var stop *timeout.Error
	if s.res == nil || !s.Outer.is() || !errors.As(s.err, &stop) || !stop.Timeout() {
		return
	}
	if stop.Tool != "simulated" {
		s.bad("the error names %q", stop.Tool)
	}
	var out *timeout.Error
	_ = errors.As(s.outerErr, &out)
	switch {
	case stop.Kind == timeout.ErrIdle && s.Idle == 0, stop.Kind == timeout.ErrTotal && s.Total == 0:
		if out == nil || out.Kind != stop.Kind || out.Tool != "outer" {
			s.bad("the enclosing execution ended with %v, the command with %v", s.outerErr, stop)
		}
		if want := map[timeout.Kind]time.Duration{timeout.ErrIdle: s.Outer.Idle, timeout.ErrTotal: s.Outer.Total}[stop.Kind]; stop.Limit != want && s.Outer.Idle <= s.Outer.Total {
			s.bad("the limit is %v, want %v", stop.Limit, want)
		}
	case len(s.holds) == 0 && s.cancelled.IsZero() && s.Outer.Lead == 0 && s.Outer.Total == 0 && s.Outer.Idle > 2*(s.Idle+s.Total+s.returned.Sub(s.begun)) && s.outerErr != s.err:
		s.bad("the enclosing execution ended with %v, the command with %v", s.outerErr, s.err)
	}
}

// SPEC 6.27: the closing signal comes once, when no more than the reserve is left, and never at or after the end.
func closes(s *seen) {
	stop, ok := s.stopTime()
	reserve, total, from := s.Reserve, s.Total, s.begun
	if s.Outer.Reserve > 0 {
		reserve, total, from = s.Outer.Reserve, s.Outer.Total, s.outerFrom
	}
	if reserve == 0 || total == 0 || s.res == nil || !ok || s.Late > 0 || s.hookTime() > 0 {
		return
	}
	if reserve >= total {
		reserve = total / 2
	}
	at := later(from.Add(total-reserve), s.begun) // right after the start if it is closing then
	got, leader := 0, s.m.Lives()[0]
	for _, sent := range s.m.Sent {
		if sent.Signal != closingSignal {
			continue
		}
		if !sent.At.Equal(at) {
			s.bad("the closing signal came after %v, want %v", sent.At.Sub(s.begun), at.Sub(s.begun))
		}
		if sent.Pid == leader.Pid {
			got++
		}
	}
	alive := leader.End.IsZero() || leader.End.After(at)
	if got > 1 || got == 0 && stop.After(at) && alive || got > 0 && stop.Before(at) {
		s.bad("%d closing signals after %v, the end came after %v", got, at.Sub(s.begun), stop.Sub(s.begun))
	}
}

// SPEC 6.1: at a limit each member is asked to end and continued, at once, and killed no sooner than after its grace. An
// abort without a grace kills at once.
func asksFirst(s *seen) {
	stop, ok := s.stopTime()
	if s.res == nil || !ok || s.Late > 0 || s.hookTime() > 0 || s.Faults != (Faults{}) || s.Stacks {
		return
	}
	grace := s.killGrace()
	switch s.res.Reason {
	case procgroup.Exited:
		return
	case procgroup.Aborted:
		grace = max(s.Abort, 0)
	}
	want := []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT}
	if grace == 0 {
		want = []syscall.Signal{syscall.SIGKILL}
	}
	for _, l := range s.m.Lives() {
		if !l.Begin.Before(stop) || !l.End.IsZero() && !l.End.After(stop) {
			continue
		}
		for _, sig := range want {
			found := false
			for _, sent := range s.m.Sent {
				found = found || sent.Pid == l.Pid && sent.At.Equal(stop) && sent.Signal == sig
			}
			if !found {
				s.bad("process %d got no %v at the stop after %v", l.Pid, sig, stop.Sub(s.begun))
			}
		}
	}
}

// Guarantee 3: a command that has left nobody is over at its end, whoever is slow to take the output.
func endsAtOnce(s *seen) {
	stop, ok := s.stopTime()
	if s.res == nil || s.res.Reason != procgroup.Exited || !ok || s.Late > 0 || s.Escapes || s.Faults != (Faults{}) || s.hookTime() > 0 {
		return
	}
	for _, l := range s.m.Lives()[1:] {
		if l.End.IsZero() || !l.End.Before(stop) {
			return
		}
	}
	if at := s.m.Ended.At; !at.Equal(stop) {
		s.bad("what was left of the command was ended %v after it, and there was nothing", at.Sub(stop))
	}
}

// SPEC 6.1: what does not handle the request to end is killed when the grace is over, and not later.
func killsAtTheGrace(s *seen) {
	stop, ok := s.stopTime()
	if s.res == nil || s.res.Reason == procgroup.Exited || !ok || s.Late > 0 || s.hookTime() > 0 || s.Faults != (Faults{}) {
		return
	}
	grace := s.killGrace()
	if s.res.Reason == procgroup.Aborted {
		grace = max(s.Abort, 0)
	}
	if e := s.m.Ended; e.Alive > 0 && e.At.Sub(stop) > grace {
		s.bad("%d processes were killed %v after the %v, their grace is %v", e.Alive, e.At.Sub(stop), s.res.Reason, grace)
	}
}

// Guarantee 6, SPEC 6.26: after a writer has failed, its stream is closed.
func hangsUp(s *seen) {
	stop, ok := s.stopTime()
	if s.res == nil || !ok || s.Late > 0 {
		return
	}
	for i, at := range s.failedAt {
		if at.IsZero() || !at.Before(stop) {
			continue
		}
		for _, r := range s.m.ReadOut {
			if r.FD == i+1 && r.At.After(at) {
				s.bad("stream %d was read %v after its writer had failed", i, r.At.Sub(at))
			}
		}
	}
}

// Guarantee 6, SPEC 6.14: a writer that is slow has the grace to take the rest.
func writersHaveTheGrace(s *seen) {
	stop, ok := s.stopTime()
	if s.res == nil || s.res.Unwritten == 0 || !ok || s.aborts() {
		return
	}
	for _, u := range []user{s.Stdout, s.Stderr} {
		if u.How == fail {
			return
		}
	}
	grace := s.killGrace()
	if s.res.Reason == procgroup.Aborted {
		grace = max(s.Abort, 0)
	}
	if s.res.Reason == procgroup.Exited && (!s.cancelled.IsZero() || s.Outer.is()) {
		return // nobody waits for the rest
	}
	if s.returned.Sub(stop) < grace {
		s.bad("%d bytes were not written, and the call returned %v after the end, the grace is %v", s.res.Unwritten, s.returned.Sub(stop), grace)
	}
}

// Guarantee 3: a call that has to wait for nobody returns at the instant of the command's end.
func promptly(s *seen) {
	takes := func(u user) bool { return u.How == "" || u.How == callback || u.How == absent }
	if s.res == nil || s.res.Reason != procgroup.Exited || s.m.Ended.Held || s.Orphans || s.Escapes || s.Faults != (Faults{}) || s.Late > 0 || s.hookTime() > 0 || s.Stdin.How != absent {
		return
	}
	if !takes(s.Stdout) || !takes(s.Stderr) || !takes(s.Output) || len(s.res.Survivors) > 0 || s.Input.How != "" {
		return
	}
	last := s.m.LeaderEnded()
	for _, l := range s.m.Lives() {
		last = later(last, l.End)
	}
	if !s.returned.Equal(last) {
		s.bad("returned %v after the end", s.returned.Sub(last))
	}
}
