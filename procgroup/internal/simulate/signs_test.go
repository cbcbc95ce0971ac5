//go:build unix

package simulate_test

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/procgroup"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/waits"
)

// These rules are about the signs of life that are not output, and about what is known of a wait for input.

// A toldWait is a call of Notify of Input.
type toldWait struct {
	at   time.Time
	wait procgroup.InputWait
}

// prompt returns what must be said of the prompt at an instant, unless input or two streams make that hard to say.
func (s *seen) prompt(at time.Time) (text string, ok bool) {
	if fed := s.m.Fed; len(fed) > 0 && !fed[0].After(at) {
		return "", false
	}
	var offset [3]int64
	newest := 0
	var last time.Time
	for _, r := range s.m.ReadOut {
		if r.At.After(at) {
			break
		}
		if newest != r.FD && r.At.Equal(last) {
			return "", false // at one instant, of both
		}
		offset[r.FD] += int64(r.N)
		newest, last = r.FD, r.At
	}
	var b []byte
	for i := offset[newest] - 1; i >= 0 && ByteOf(newest, i) != '\n'; i-- {
		b = append(b, ByteOf(newest, i))
	}
	slices.Reverse(b)
	return string(b), true
}

// stirred returns the first instant strictly between two at which there was output or input.
func (s *seen) stirred(from, to time.Time) bool {
	in := func(at time.Time) bool { return at.After(from) && at.Before(to) }
	return slices.ContainsFunc(s.m.Fed, in) || slices.ContainsFunc(s.m.ReadOut, func(r Output) bool { return in(r.At) })
}

// SPEC 6.18: what is said of a wait was found by a look that began after the last output and input, and it was so then.
func saysWhatIs(s *seen) {
	history, looks := s.m.Waits, s.m.Looks
	for i, told := range s.told {
		w := told.wait
		if i > 0 && w.Pid == 0 && s.told[i-1].wait.Pid == 0 || i == 0 && w.Pid == 0 {
			s.bad("told twice that the command does not wait")
		}
		if w.Pid == 0 || s.Input.How != "" || s.Late > 0 {
			continue
		}
		n := 0
		for n < len(looks) && !looks[n].Ended.After(told.at) {
			n++
		}
		if n < 2 {
			s.bad("told after %d looks that process %d waits for input", n, w.Pid)
			continue
		}
		look := looks[n-1]
		if s.stirred(look.Began, told.at) {
			s.bad("told after %v of %v, which was found before the last output or input", told.at.Sub(s.begun), w)
		}
		want := waits.InputIfPrompted
		if w.Certain {
			want = waits.InputCertainly
		}
		is := false
		for j, h := range history {
			until := told.at.Add(1)
			if j+1 < len(history) {
				until = history[j+1].At
			}
			is = is || h.Pid == w.Pid && h.Waiting == want && !h.At.After(look.Ended) && !until.Before(look.Began)
		}
		if !is {
			s.bad("told after %v of %v of %d, which was not so", told.at.Sub(s.begun), w, w.Pid)
		}
		if text, ok := s.prompt(look.Began); ok && text != w.Prompt {
			s.bad("told after %v of the prompt %q, want %q", told.at.Sub(s.begun), w.Prompt, text)
		}
		if !w.Certain && w.Prompt == "" {
			s.bad("told of a wait that may be none, without a prompt")
		}
	}
}

// SPEC 6.18: a wait that goes on is known within a second of its beginning, or of the last output and input, and the
// command is stopped then if that was asked for.
func findsWaits(s *seen) {
	if s.res == nil || s.Faults.Input > 0 || s.Stdin.How == absent || s.Input.How != "" || s.slowTakers() || s.aborts() || s.Late > 0 {
		return
	}
	stop, ok := s.stopTime()
	if !ok {
		return
	}
	history := s.m.Waits
	for i, w := range history {
		until := stop
		if i+1 < len(history) {
			until = history[i+1].At
		}
		if i > 0 && history[i-1].At.Equal(w.At) {
			continue // many at one instant
		}
		from := w.At.Add(time.Second)
		if w.Waiting != waits.InputCertainly || !from.Before(until) || s.stirred(w.At.Add(-1), from.Add(1)) || !from.Before(stop) {
			continue
		}
		if s.StopOnInput {
			s.bad("process %d waits for input since %v, and the command runs until %v", w.Pid, w.At.Sub(s.begun), stop.Sub(s.begun))
		}
		if s.Told && !slices.ContainsFunc(s.told, func(t toldWait) bool { return t.wait.Certain && t.wait.Pid == w.Pid && !t.at.After(from) }) {
			s.bad("process %d waits for input since %v, and nobody was told by %v", w.Pid, w.At.Sub(s.begun), from.Sub(s.begun))
		}
		if in := s.res.Input; s.res.Reason == procgroup.IdleTimeout && until.Equal(stop) && i == len(history)-1 && (in.Pid != w.Pid || !in.Certain) {
			s.bad("an idle timeout, while process %d waits for input, with %v", w.Pid, in)
		}
	}
}

// SPEC 6.18, 6.29: what is known of a wait is in the result, the message and the error.
func namesTheWait(s *seen) {
	if s.res == nil {
		return
	}
	in := s.res.Input
	switch s.res.Reason {
	case procgroup.WaitingForInput:
		if !s.StopOnInput || !in.Certain || in.Pid == 0 {
			s.bad("stopped because of %+v", in)
		}
		if want := "simulated " + in.String(); s.res.Message != want || s.err.Error() != want || !errors.Is(s.err, procgroup.WaitingForInput) {
			s.bad("the message is %q, the error %q, want %q", s.res.Message, s.err, want)
		}
	case procgroup.IdleTimeout:
		if in.Pid != 0 && !strings.Contains(s.err.Error(), in.String()) {
			s.bad("the error %q does not say %q", s.err, in)
		}
	case procgroup.Exited:
		if in != (procgroup.InputWait{}) {
			s.bad("a command that has ended by itself waits: %+v", in)
		}
	}
}

// Guarantee 7: output is read, and so a beat, at the instant at which it is written, unless code of the caller's holds
// that up.
func readsAtOnce(s *seen) {
	stop, ok := s.stopTime()
	if s.res == nil || !ok || s.slowTakers() || s.aborts() || s.Late > 0 {
		return
	}
	var written, read [3]int64
	reads := s.m.ReadOut
	for _, w := range s.m.Written {
		for len(reads) > 0 && !reads[0].At.After(w.At) {
			read[reads[0].FD] += int64(reads[0].N)
			reads = reads[1:]
		}
		if written[w.FD] += int64(w.N); read[w.FD] < written[w.FD]-int64(w.N) && w.At.Before(stop) {
			s.bad("stream %d: %d bytes were read by %v, of %d", w.FD-1, read[w.FD], w.At.Sub(s.begun), written[w.FD])
		}
	}
}

// SPEC 6.13: the longest silence, to the nanosecond.
func longestSilence(s *seen) {
	stop, ok := s.stopTime()
	if s.res == nil || !ok || s.aborts() || s.Victim == "wait" || s.hookTime() > 0 || s.Faults.Snapshot > 0 {
		return
	}
	last, longest := s.begun, time.Duration(0)
	for _, w := range s.m.ReadOut {
		if w.At.After(stop) {
			break
		}
		longest, last = max(longest, w.At.Sub(last)), w.At
	}
	if longest = max(longest, stop.Sub(last)); s.res.LongestGap != longest {
		s.bad("the longest silence is %v, want %v", s.res.LongestGap, longest)
	}
}

// Guarantee 7, SPEC 6.12: work that is measured is a sign of life. A tree that works all the time is not stopped, and one
// that neither writes nor works is, at most a quarter of the limit late. No look is a sign of life after the end.
func workCounts(s *seen) {
	stop, ok := s.stopTime()
	if ok && s.Work && s.res != nil && len(s.holds) == 0 {
		last := pulse.Of(s.inner).LastTime()
		if last.After(stop) && !slices.ContainsFunc(s.m.ReadOut, func(r Output) bool { return r.At.Equal(last) }) {
			s.bad("a look has beaten %v after the end", last.Sub(stop))
		}
	}
	if !s.Work || s.Idle == 0 || s.Outer.is() || len(s.holds) > 0 || s.res == nil || !ok || s.slowTakers() || s.aborts() || s.Late > 0 || s.hookTime() > 0 {
		return
	}
	idle := s.Idle
	if s.Total > 0 {
		idle = min(idle, s.Total)
	}
	if idle < 12*time.Millisecond { // the looks are a millisecond apart at least
		return
	}
	step := idle / 6
	out, surely, perhaps := s.begun, s.begun, s.begun
	for _, w := range s.m.Written {
		if w.At.Before(stop) {
			out = w.At
		}
	}
	for _, w := range s.m.Worked {
		from, to := w.From, w.To
		if from.After(stop) {
			continue
		}
		if to.After(stop) {
			to = stop
		}
		if perhaps = later(perhaps, to); to.Sub(from) >= idle/4 {
			surely = later(surely, to)
		}
	}
	if s.Faults.Meter > 0 {
		surely = out
	}
	least := max(step/50, time.Duration(s.CPURate*float64(step))) // the least work between two looks that counts
	if s.res.Reason == procgroup.IdleTimeout && stop.Sub(later(out, surely.Add(-least))) < idle {
		s.bad("idle timeout after %v, the last output was after %v, and the last work after %v", stop.Sub(s.begun), out.Sub(s.begun), surely.Sub(s.begun))
	}
	late := idle / 4
	if s.Faults.Meter > 0 {
		late = max(late, 2*time.Second)
		if s.Faults.Meter != Never {
			late += 2 * s.Faults.Meter // a look is in progress, which tells of work only at its end, and another follows
		}
	}
	if quiet := stop.Sub(later(out, perhaps)); quiet > idle+late {
		s.bad("the command was quiet for %v, and the idle limit is %v", quiet, idle)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// stopTime returns when the command was stopped or has ended by itself. It is not ok if that is not known to the nanosecond.
func (s *seen) stopTime() (at time.Time, ok bool) {
	if len(s.snaps) != 1 {
		return time.Time{}, false
	}
	return s.begun.Add(s.snaps[0].Elapsed), true
}

// SPEC 5.1: the code says the reason.
func codes(s *seen) {
	want := map[procgroup.Reason]int{procgroup.IdleTimeout: 124, procgroup.TotalTimeout: 124, procgroup.WaitingForInput: 124,
		procgroup.StoppedByTerminal: 124, procgroup.Aborted: 130, procgroup.TooMuchOutput: 153}
	if s.res == nil {
		return
	}
	code, stopped := want[s.res.Reason]
	if stopped && s.res.ExitCode != code {
		s.bad("%v with the code %d", s.res.Reason, s.res.ExitCode)
	}
	if code := s.m.Code(); !stopped && s.res.ExitCode != code && (code != 0 || s.res.ExitCode != 1 || s.err == nil) {
		s.bad("the command has ended with the code %d, the result has %d", code, s.res.ExitCode)
	}
}

// SPEC 6.16: a process that the terminal has stopped is found within a second.
func stoppedByTerminal(s *seen) {
	if s.res == nil || s.res.Reason != procgroup.StoppedByTerminal {
		return
	}
	is := func(w Wait) bool { return w.Waiting == waits.StoppedByTerminal }
	if !slices.ContainsFunc(s.m.Waits, is) {
		s.bad("stopped by a terminal that has stopped nothing")
	}
}
