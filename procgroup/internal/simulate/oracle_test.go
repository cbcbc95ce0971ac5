//go:build unix

package simulate_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// rules judge a run, each by what it says of the guarantees of the package.
var rules = []func(*seen){oneOutcome, endsAtTheLimit, returnsInTime, hasItsGrace, everyByte, toldOnce, leavesNothing,
	ownEnd, signalsEnd, enclosed, closes, asksFirst, killsAtTheGrace, endsAtOnce, hangsUp, writersHaveTheGrace, combinedOrder, promptly,
	leftovers, notices, stacks, codes, readsAtOnce, saysWhatIs, findsWaits, namesTheWait, stoppedByTerminal, longestSilence, workCounts}

// judge returns what was wrong about a run.
func (s *seen) judge() []string {
	for _, rule := range rules {
		rule(s)
	}
	slices.Sort(s.wrong)
	return slices.Compact(s.wrong)
}

// noTime is later than anything.
const noTime = time.Duration(math.MaxInt64)

// slowTakers reports whether code of the caller's may keep the output from being read when it is written.
func (s *seen) slowTakers() bool {
	for _, u := range []user{s.Stdout, s.Stderr} {
		if u.How == slow || u.How == block || u.How == fail || u.How == panics || u.How == goexit {
			return true
		}
	}
	return false
}

// aborts reports whether a panic or a Goexit of the caller's code may abort the command.
func (s *seen) aborts() bool {
	for _, u := range []user{s.Stdout, s.Stderr, s.Output, s.Hook, s.Stdin, s.Input} {
		if u.How == panics || u.How == goexit {
			return true
		}
	}
	return false
}

// due returns when each limit falls due, counted from the start, by what was read of the processes. A beat at the limit
// does not count, and of two limits that fall due at once the total wins.
func (s *seen) due() (idle, total, output, cancel time.Duration) {
	idle, total, output, cancel = noTime, noTime, noTime, noTime
	if s.Total > 0 {
		total = s.Total
	}
	if s.Outer.Total > 0 {
		total = min(total, s.Outer.Total-s.Outer.Lead)
	}
	if s.Idle > 0 {
		idle = s.idleDue(s.begun, min(s.Idle, total), false)
	}
	if o := s.Outer; o.Idle > 0 {
		limit := o.Idle
		if o.Total > 0 {
			limit = min(limit, o.Total)
		}
		idle = min(idle, s.idleDue(s.outerFrom, limit, true))
	}
	if !s.cancelled.IsZero() {
		cancel = s.cancelled.Sub(s.begun)
		if s.OwnContext {
			cancel += 10 * time.Millisecond // for the caller's, of which it may come
		}
	}
	written := int64(0)
	for _, w := range s.m.ReadOut {
		if written += int64(w.N); s.OutputLimit > 0 && written > s.OutputLimit && output == noTime {
			output = w.At.Sub(s.begun)
		}
	}
	return idle, total, output, cancel
}

// idleDue returns when an idle limit falls due, from the start of the command on: of its execution, or the enclosing one.
func (s *seen) idleDue(from time.Time, limit time.Duration, outer bool) time.Duration {
	type sign struct {
		at   time.Time
		hold int
	}
	signs := []sign{{at: s.begun}} // a start is a beat of the enclosing execution
	for _, w := range s.m.ReadOut {
		signs = append(signs, sign{at: w.At})
	}
	said := s.notified()
	for _, at := range said.beats {
		signs = append(signs, sign{at: at})
	}
	for _, h := range append(said.holds, s.holds...) {
		if outer || !h.outer {
			signs = append(signs, sign{h.from, 1}, sign{h.to, -1})
		}
	}
	slices.SortStableFunc(signs, func(a, b sign) int { return a.at.Compare(b.at) })
	due, held := from.Add(limit), 0
	for _, sign := range signs {
		if held == 0 && !sign.at.Before(due) {
			break
		}
		held += sign.hold
		due = sign.at.Add(limit)
	}
	return due.Sub(s.begun)
}

// Guarantee 1: one outcome, and the first one wins.
func oneOutcome(s *seen) {
	if s.res == nil {
		return
	}
	if s.err != s.again {
		s.bad("the second Wait returned %v, the first %v", s.again, s.err)
	}
	if got := timeout.ExitCode(s.err); got != s.res.ExitCode {
		s.bad("the result has the code %d, the error %d", s.res.ExitCode, got)
	}
	ended := s.m.LeaderEnded()
	if ended.IsZero() {
		ended = time.Unix(1<<40, 0)
	}
	end := ended.Sub(s.begun)
	var stop *timeout.Error
	_ = errors.As(s.err, &stop)
	idle, total, output, cancel := s.due()
	first := min(idle, total, output, cancel)
	exact := !s.aborts() && !s.Work && !s.Stacks && s.Victim != "wait"
	switch s.res.Reason {
	case procgroup.Exited:
		if exact && first < end {
			s.bad("the command has ended by itself after %v, but was due to be stopped after %v (idle %v, total %v, output %v, cancel %v)", end, first, idle, total, output, cancel)
		}
	case procgroup.IdleTimeout, procgroup.TotalTimeout:
		want := idle
		if s.res.Reason == procgroup.TotalTimeout {
			want = total
		}
		if stop == nil {
			s.bad("a timeout without a *timeout.Error: %v", s.err)
			return
		}
		if stop.Elapsed < want && exact {
			s.bad("%v after %v, due after %v", s.res.Reason, stop.Elapsed, want)
		}
		if exact && (stop.Elapsed != want || want > first) {
			s.bad("%v after %v, want the first of idle %v, total %v, output %v, cancel %v", s.res.Reason, stop.Elapsed, idle, total, output, cancel)
		}
		if s.res.Reason == procgroup.IdleTimeout && total <= want && total != noTime && exact {
			s.bad("idle timeout after %v where the total is due after %v", want, total)
		}
		if s.Victim == "wait" {
			end += s.Late
		}
		if end < stop.Elapsed {
			s.bad("%v after %v, but the command has ended after %v", s.res.Reason, stop.Elapsed, end)
		}
	case procgroup.Aborted:
		if cancel == noTime && !s.aborts() {
			s.bad("aborted, but nobody has: %v", s.err)
		}
	case procgroup.TooMuchOutput:
		if output == noTime {
			s.bad("stopped for too much output, of which there was not: %v", s.err)
		}
	}
}

// SPEC 3.5: the instant is exact; a limit never fires early, and late only while the caller's code holds up reading.
func endsAtTheLimit(s *seen) {
	var stop *timeout.Error
	if s.res == nil || !errors.As(s.err, &stop) || !stop.Timeout() {
		return
	}
	if stop.Kind == timeout.ErrIdle && stop.LongestGap < stop.Limit && !s.Outer.is() {
		s.bad("idle timeout after a gap of %v, the limit is %v", stop.LongestGap, stop.Limit)
	}
	if _, total, _, _ := s.due(); stop.Kind == timeout.ErrTotal && stop.Elapsed != total {
		s.bad("total timeout after %v, the total is due after %v", stop.Elapsed, total)
	}
}

// Guarantee 3, SPEC 6.11: the call returns at most the grace and a second after the limit, the abort or the end.
func returnsInTime(s *seen) {
	if s.res == nil {
		return
	}
	grace := s.killGrace()
	var stop *timeout.Error
	switch s.res.Reason {
	case procgroup.Exited:
		stop = nil
	default:
		_ = errors.As(s.err, &stop)
	}
	from := s.m.LeaderEnded()
	switch {
	case s.res.Reason == procgroup.Aborted && !s.cancelled.IsZero():
		from = s.cancelled
		grace = max(s.Abort, 0)
	case stop != nil && s.res.Reason != procgroup.Aborted:
		from = s.begun.Add(stop.Elapsed)
	default:
		if s.res.Reason == procgroup.Aborted { // by code of the caller's
			grace = max(s.Abort, 0)
		}
		if s.res.Reason != procgroup.Exited {
			var ok bool
			if from, ok = s.stopTime(); !ok {
				return
			}
		}
	}
	if s.res.Reason == procgroup.Exited && s.cancelled.After(from) && s.Outer.Total+s.Outer.Idle == 0 {
		from, grace = s.cancelled, 0 // nobody waits for the writers any more
	}
	bound := grace + time.Second + s.hookTime() + s.Late
	if took := s.returned.Sub(from); took > bound {
		s.bad("returned %v after the %v, want at most %v", took, s.res.Reason, bound)
	}
}

// SPEC 6.1: what handles the request to end has the kill grace; and an abort, its own.
func hasItsGrace(s *seen) {
	var stop *timeout.Error
	if s.res == nil || !errors.As(s.err, &stop) || s.aborts() {
		return
	}
	grace := s.killGrace()
	if s.res.Reason == procgroup.Aborted {
		grace = s.Abort
	}
	if e := s.m.Ended; e.Alive > 0 && e.At.Sub(s.begun) < stop.Elapsed+max(grace, 0) {
		s.bad("%d processes were killed %v after the %v, their grace is %v", e.Alive, e.At.Sub(s.begun)-stop.Elapsed, s.res.Reason, grace)
	}
}

// hookTime is how long the return may wait for hooks and loggers beside the bound: the grace of the execution, which
// is the kill grace and a second.
func (s *seen) hookTime() time.Duration {
	if s.Hook.How == "" && s.Logger.How == "" {
		return 0
	}
	return s.killGrace() + time.Second
}

// killGrace is the grace of a command that a limit stops.
func (s *seen) killGrace() time.Duration {
	if s.Kill == 0 {
		return 5 * time.Second
	}
	return max(s.Kill, 0)
}

// Guarantee 6, SPEC 6.14: every byte is in the result, or counted.
func everyByte(s *seen) {
	if s.res == nil {
		return
	}
	var written [2]int64
	ended := s.m.LeaderEnded()
	var before [2]int64 // the leader's end
	for _, w := range s.m.Written {
		written[w.FD-1] += int64(w.N)
		if ended.IsZero() || !w.At.After(ended) {
			before[w.FD-1] += int64(w.N)
		}
	}
	if read := s.m.Input; read > int64(s.fed) {
		s.bad("processes have read %d bytes of input, of which there were only %d", read, s.fed)
	}
	failed := strings.Contains(errText(s.err), errWriter.Error()) || s.res.Unwritten > 0 || s.aborts()
	if e := s.m.Ended; s.res.Reason == procgroup.Exited && e.Held && !s.res.PipeHeld && !failed {
		s.bad("another process holds the output, and the result does not say so")
	}
	for i, o := range []procgroup.Output{s.res.Stdout, s.res.Stderr} {
		b := o.Bytes()
		if o.Total != o.Dropped+int64(len(b)) {
			s.bad("stream %d: total %d, dropped %d, kept %d", i, o.Total, o.Dropped, len(b))
		}
		if err := checkBytes(i, o.Total-int64(len(b)), b); err != nil {
			s.bad("stream %d: %v", i, err)
		}
		if o.Total > written[i] {
			s.bad("stream %d: %d bytes, of which only %d were written", i, o.Total, written[i])
		}
		want := written[i]
		if s.res.PipeHeld || s.res.Reason != procgroup.Exited {
			want = min(want, before[i])
		}
		if s.Stacks {
			continue
		}
		if o.Total < want && !failed {
			s.bad("stream %d: %d bytes in the result, %d were written", i, o.Total, want)
		}
		u := s.Stdout
		if i == 1 {
			u = s.Stderr
		}
		if u.How != absent && !(s.OnePipe && i == 1) {
			if err := checkBytes(i, 0, s.got[i]); err != nil {
				s.bad("writer %d: %v", i, err)
			}
		}
	}
	if takes := func(u user) bool { return u.How == "" || u.How == callback || u.How == absent }; takes(s.Stdout) && takes(s.Stderr) && s.res.Unwritten > 0 {
		s.bad("%d bytes were not written to writers that take them", s.res.Unwritten)
	}
	if s.Stdout.How != absent && (s.OnePipe || s.Stderr.How != absent) && !s.aborts() {
		if got, all := int64(len(s.got[0])+len(s.got[1]))+s.res.Unwritten, s.res.Stdout.Total+s.res.Stderr.Total; got < all {
			s.bad("the writers got %d bytes with those that are counted as unwritten, of %d", got, all)
		}
	}
	if u := s.Output.How; u == "" || u == slow || u == callback || u == block && s.Output.N > 0 {
		all := s.res.Stdout.Total + s.res.Stderr.Total + s.res.Stacks.Total
		if got := s.delivered + s.res.Skipped; !s.Stacks && (got != all || u == "" && s.res.Skipped > 0) {
			s.bad("the callback got %d bytes, %d were skipped, of %d", s.delivered, s.res.Skipped, all)
		}
	}
	if c := s.res.Combined; c.Total != s.res.Stdout.Total+s.res.Stderr.Total && !s.OnePipe {
		s.bad("combined: %d bytes, the streams have %d and %d", c.Total, s.res.Stdout.Total, s.res.Stderr.Total)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Guarantee 1, SPEC 6.24: hooks are told once, and what Wait returned.
func toldOnce(s *seen) {
	if s.res == nil {
		return
	}
	if len(s.finished) != 1 {
		s.bad("Finished was called %d times", len(s.finished))
	} else if s.finished[0] != s.err && !s.unreported() {
		s.bad("Finished was told %v, Wait returned %v", s.finished[0], s.err)
	}
	if timed := s.res.Reason == procgroup.IdleTimeout || s.res.Reason == procgroup.TotalTimeout; timed != (s.exceeded == 1) || s.exceeded > 1 {
		s.bad("%v, and Exceeded was called %d times", s.res.Reason, s.exceeded)
	}
	for _, err := range s.waited {
		if err != s.err {
			s.bad("another Wait returned %v, the first %v", err, s.err)
		}
	}
	for i, n := range s.last {
		if n > 1 || n == 0 && s.Output.How == "" {
			s.bad("the callback got %d chunks with Last of stream %d", n, i)
		}
	}
}

// unreported reports whether the call has returned while a hook or a log handler was stuck. Then its error says so,
// and is another value than the one that hooks are told.
func (s *seen) unreported() bool {
	var stop *timeout.Error
	return (s.Hook.How != "" || s.Logger.How != "") && (!errors.As(s.err, &stop) || stop.Unreported)
}

// Guarantee 9: nothing of the call is left. Goroutines are found by the bubble.
func leavesNothing(s *seen) {
	for _, name := range s.late {
		if name == "hook" && s.unreported() || name == "logger" || name == "stdin" {
			continue
		}
		s.bad("%s was called after Wait had returned", name)
	}
}
