//go:build unix

package simulate_test

import (
	"bytes"
	"slices"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
)

// These rules are about the output as a whole, and about what is told of processes at the end.

// SPEC 6.25: both streams together are in the order of reading. What was read of both at one instant has none.
func combinedOrder(s *seen) {
	if s.res == nil || s.Stacks || s.res.Combined.Dropped > 0 {
		return
	}
	left := s.res.Combined.Bytes()
	var offset [3]int64
	reads := s.m.ReadOut
	for len(reads) > 0 && len(left) > 0 {
		n := 1
		for n < len(reads) && reads[n].At.Equal(reads[0].At) {
			n++
		}
		group := slices.Clone(reads[:n])
		for reads = reads[n:]; len(group) > 0 && len(left) > 0; {
			found := false
			for i, r := range group {
				if slices.ContainsFunc(group[:i], func(o Output) bool { return o.FD == r.FD }) {
					continue
				}
				b := make([]byte, min(r.N, len(left)))
				for j := range b {
					b[j] = ByteOf(r.FD, offset[r.FD]+int64(j))
				}
				if bytes.HasPrefix(left, b) {
					left, found = left[len(b):], true
					offset[r.FD] += int64(r.N)
					group = slices.Delete(group, i, i+1)
					break
				}
			}
			if !found { // what was read at the instant at which the writer failed may be dropped
				lost := slices.IndexFunc(group, func(r Output) bool {
					at := s.failedAt[r.FD-1]
					return !at.IsZero() && !r.At.Before(at)
				})
				if lost >= 0 {
					offset[group[lost].FD] += int64(group[lost].N)
					group, found = slices.Delete(group, lost, lost+1), true
				}
			}
			if !found {
				s.bad("combined is not in the order of reading, %d bytes before its end", len(left))
				return
			}
		}
	}
}

// Guarantee 4, SPEC 6.23: after a command has ended by itself, what was killed is listed, and what was kept.
func leftovers(s *seen) {
	e := s.m.Ended
	if s.res == nil || s.res.Reason != procgroup.Exited || s.Faults != (Faults{}) || s.Escapes {
		return
	}
	lists := func(l procgroup.ProcessList, pid int) bool {
		return slices.ContainsFunc(l.Processes, func(p procgroup.ProcessInfo) bool { return p.Pid == pid })
	}
	for _, l := range s.m.Lives()[1:] {
		if !l.Begin.Before(e.At) || !l.End.IsZero() && l.End.Before(e.At) {
			continue
		}
		killed := slices.ContainsFunc(s.m.Sent, func(x Sent) bool { return x.Pid == l.Pid && x.Signal == syscall.SIGKILL && !x.At.Before(e.At) })
		switch {
		case killed && s.Orphans:
			s.bad("process %d was killed, and not kept", l.Pid)
		case killed && !lists(s.res.Killed, l.Pid) && !slices.Contains(s.res.Survivors, l.Pid):
			s.bad("process %d was killed and is not listed", l.Pid)
		case s.Orphans && !lists(s.res.Kept, l.Pid) && (l.End.IsZero() || l.End.After(e.At)):
			s.bad("process %d runs on and is not listed", l.Pid)
		}
	}
	for _, p := range s.res.Killed.Processes {
		if slices.Contains(s.res.Survivors, p.Pid) {
			s.bad("process %d was killed and survives", p.Pid)
		}
	}
}

// SPEC 6.22: only a time limit has programs write their stacks, only those that do so get the signal, and within 200 ms.
func stacks(s *seen) {
	stop, ok := s.stopTime()
	if s.res == nil || !ok || s.aborts() {
		return
	}
	if slices.ContainsFunc(s.Events, func(e event) bool { return e.S == syscall.SIGQUIT }) {
		return
	}
	timed := s.res.Reason == procgroup.IdleTimeout || s.res.Reason == procgroup.TotalTimeout
	for _, x := range s.m.Sent {
		switch {
		case x.Signal == syscall.SIGQUIT && (!timed || !s.Stacks || !x.Handled):
			s.bad("process %d got a request for its stacks after %v, the %v came after %v", x.Pid, x.At.Sub(s.begun), s.res.Reason, stop.Sub(s.begun))
		case x.Signal == syscall.SIGQUIT && (x.At.Before(stop) || s.hookTime() == 0 && s.Faults == (Faults{}) && x.At.After(stop.Add(200*time.Millisecond))):
			s.bad("process %d got a request for its stacks after %v, the limit fired after %v", x.Pid, x.At.Sub(s.begun), stop.Sub(s.begun))
		}
	}
}
