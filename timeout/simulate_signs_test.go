package timeout_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// A life is what can be said of an execution's heartbeat at an instant: it is made of the events before that, by the
// documentation alone. Where the documentation leaves something open, it has both bounds: an event that was made aside
// at the instant of a stop may be before or after it, and a beat in a burst is dated up to a millisecond late.
type life struct {
	r    *run
	o    *seen
	idle time.Duration

	lastLo, lastHi   time.Duration // what the last sign is dated
	gapLo, gapHi     time.Duration // the longest gap, the last one not included
	countLo, countHi uint64
	held             int
	heldAt, heldFor  time.Duration // since when it is held, and for how long it was before that
	details          []any         // what the newest may be
	open             bool          // a hold may or may not have been in time

	exceeded           bool // where limits are only observed, with the bounds of the instant
	exceedLo, exceedHi time.Duration
	warned             []stretch // when NearIdle is due
	overdue            string    // a sign came when the limit should have fired long before

	crowd []time.Duration // the latest beats
}

// A stretch is an instant with its bounds. It is sure if something has to happen then.
type stretch struct {
	lo, hi time.Duration
	sure   bool
}

// later is a + b, but no more than never.
func later(a, b time.Duration) time.Duration {
	if b > never-a {
		return never
	}
	return a + b
}

// limits are what the configuration of o means (SPEC 2.2, 2.3, 2.13, 3.20).
func (o *seen) limits() timeout.Config {
	c := o.config
	c.Total, c.Idle, c.Reserve = max(c.Total, 0), max(c.Idle, 0), max(c.Reserve, 0)
	if c.Total > 0 {
		c.Idle = min(c.Idle, c.Total)
		if c.Reserve >= c.Total {
			c.Reserve = c.Total / 2
		}
	}
	switch {
	case c.Grace == 0:
		c.Grace = timeout.DefaultGrace
	case c.Grace < 0:
		c.Grace = 0
	}
	return c
}

// cap is when the total that is enforced falls due, or never; limit is what it is said to be, and borrowed that it is
// the rest of the caller's deadline (SPEC 3.12).
func (r *run) cap(o *seen) (at, limit time.Duration, borrowed bool) {
	at, limit = never, 0
	if c := o.limits(); c.Total > 0 && !o.observe {
		at, limit = later(o.start, c.Total), c.Total
	}
	if o.around == nil {
		if d := r.caller.deadline; d != never && d <= at {
			return d, d - o.start, true
		}
		return at, limit, false
	}
	if d := o.script.between; d > o.start && d <= at {
		at, limit, borrowed = d, d-o.start, true
	}
	if outer, theirs, b := r.cap(o.around); outer != never && outer <= at {
		return outer, theirs, b
	}
	return at, limit, borrowed
}

// alive reports whether a beat of e reaches o, and whether that is sure. ended are the executions that have ended.
func (r *run) alive(e event, o *seen, ended map[int]bool) (yes, sure bool) {
	sure = true
	for x := r.seen[e.of]; x != o; x = x.around {
		switch {
		case x.at < e.at || ended[x.id] && !e.aside:
			return false, true
		case x.at == e.at && (e.aside || x.stop != nil && x.stop.Abandoned):
			sure = false
		}
	}
	return true, sure
}

// within reports whether id is o, or runs in it.
func (r *run) within(id int, o *seen) bool {
	for x := r.seen[id]; x != nil; x = x.around {
		if x == o {
			return true
		}
	}
	return false
}

// What life is to make of the events at its instant, if not a number of events, of which those that come before are
// sure: leave them out, or take none for sure.
const (
	before = -1
	beside = -2
)

// life returns what is known at an instant.
func (r *run) life(o *seen, until time.Duration, ties int) *life {
	l := &life{r: r, o: o, idle: o.limits().Idle, lastLo: o.start, lastHi: o.start, details: []any{nil}, exceedLo: never, exceedHi: never}
	on := map[int]int{} // the holds in force, and of which execution
	ended := map[int]bool{}
	for i, e := range r.events {
		if e.at < o.start || !r.within(e.of, o) {
			continue
		}
		at := e.at == until
		if e.at > until || at && (ties == before || ties >= 0 && i >= ties && !e.aside) {
			continue
		}
		if e.what == anEnd {
			if ended[e.of] = true; e.of == o.id {
				break
			}
			back := 0
			for h, of := range on {
				if r.within(of, r.seen[e.of]) {
					delete(on, h)
					back++
				}
			}
			if back > 0 {
				l.sign(e, !at || ties >= 0)
				l.release(e.at, back)
			}
			continue
		}
		yes, sure := r.alive(e, o, ended)
		if !yes && e.what != aClose { // a probe of a function that was abandoned is in the enclosing ones until it is closed
			continue
		}
		sure = sure && yes && (!at || ties >= 0 && i < ties && !e.aside)
		switch e.what {
		case aStart:
			l.sign(e, sure && r.seen[e.hold].begun)
		case aHold:
			l.sign(e, sure)
			on[e.hold] = e.of
			if l.held++; l.held == 1 {
				l.heldAt = e.at
			}
			l.open = l.open || !sure
		case aRelease:
			if _, ok := on[e.hold]; ok {
				delete(on, e.hold)
				l.sign(e, sure) // while it is still held, and so no gap
				l.release(e.at, 1)
				l.open = l.open || !sure
			}
		case aClose: // in doubt it is a sign, since nobody can look any more
			if due := later(l.lastLo, l.idle); l.idle > 0 && l.held == 0 && e.at >= due {
				if at, known := r.looked(o, due); at >= e.at {
					l.sign(e, sure && known && at > e.at)
				}
			}
		default:
			l.sign(e, sure)
		}
	}
	return l
}

// release ends n holds at an instant.
func (l *life) release(at time.Duration, n int) {
	if l.held -= n; l.held == 0 {
		l.heldFor += at - l.heldAt
	}
}

// judged returns the bounds of the instant at which the idle limit falls due without a further sign.
func (l *life) judged() (lo, hi time.Duration) {
	if l.idle == 0 || l.held > 0 {
		return never, never
	}
	lo, hi = later(l.lastLo, l.idle), later(l.lastHi, l.idle)
	if hi == never {
		return lo, hi
	}
	if at, sure := l.r.looked(l.o, lo); sure && lo == hi {
		return at, at
	}
	most := later(hi, max(l.idle/4, 2*time.Second))
	if len(l.r.probes) == 0 {
		most = hi
	}
	return lo, most
}

// looked returns when an idle limit that falls due at an instant can be judged, since somebody has looked (SPEC 6.12).
// It is not sure where something else happens at the same instant.
func (r *run) looked(o *seen, due time.Duration) (at time.Duration, sure bool) {
	at, sure = due, true
	last := later(due, max(o.limits().Idle/4, 2*time.Second))
	for _, p := range r.probes {
		if !r.within(p.of, o) || p.from > due || p.to < due {
			continue
		}
		if p.from >= due-recent && p.from < due {
			continue
		}
		if p.from == due || p.to == due {
			return last, false
		}
		for x := r.seen[p.of]; x != nil && x != o; x = x.around {
			sure = sure && x.at > last
		}
		when := last
		for _, l := range p.looks {
			if l[0] >= due-recent {
				when = min(when, max(l[1], due))
			}
		}
		at = max(at, when)
	}
	return at, sure
}

func (l *life) sign(e event, sure bool) {
	t := e.at
	if lo, hi := l.judged(); t >= lo {
		switch {
		case l.o.observe:
			l.exceed(t)
		case (t > hi || t == hi && len(l.r.probes) == 0) && t < l.o.end && l.overdue == "":
			l.overdue = fmt.Sprint("there was a sign at ", t, ", after the limit at ", hi)
		}
	}
	if l.held == 0 {
		l.warning(t)
		l.gapHi = max(l.gapHi, t-l.lastLo)
	}
	date := t
	if e.counts > 0 {
		l.crowd = append(l.crowd, t)
		// A burst goes on for up to 1 ms after its last crowded moment.
		if n := len(l.crowd); n > 100 && t-l.crowd[n-101] <= 2*time.Millisecond && !l.r.clocked(l.o) {
			date = later(t, time.Millisecond)
		}
		l.countHi += e.counts
	}
	if sure {
		if l.held == 0 && date == t {
			l.gapLo = max(l.gapLo, t-l.lastHi)
		}
		if date == t {
			l.countLo += e.counts
		}
		l.lastLo = max(l.lastLo, t)
	}
	l.lastHi = max(l.lastHi, date)
	if e.detail != nil {
		if sure {
			l.details = l.details[:0]
		}
		l.details = append(l.details, e.detail)
	}
}

// clocked reports whether o is on a clock that it was given, of which nobody knows that it shows the same time: there beats are
// exact, and nobody waits for the caller's deadline to say more.
func (r *run) clocked(o *seen) bool {
	return o != nil && (o.clocked || r.clocked(o.around))
}

// warning notes that 80 % of the limit have passed before the sign at t.
func (l *life) warning(t time.Duration) {
	if l.idle == 0 || l.lastHi > never-l.idle {
		return
	}
	s := stretch{lo: l.lastLo + l.idle - l.idle/5, hi: l.lastHi + l.idle - l.idle/5}
	if s.lo > t {
		return
	}
	s.sure, s.hi = s.lo == s.hi && s.lo < t, min(s.hi, t)
	l.warned = append(l.warned, s)
}

// exceed notes that a limit that is only observed has fallen due at or before t.
func (l *life) exceed(t time.Duration) {
	if lo, hi := l.judged(); !l.exceeded && t >= lo {
		l.exceeded = t > hi || t == hi && len(l.r.probes) == 0 // or a look may have ended at this instant
		l.exceedLo, l.exceedHi = min(l.exceedLo, lo), hi
	}
}

// end ends the life: with the last gap.
func (l *life) end(t time.Duration) (gapLo, gapHi time.Duration) {
	if l.held > 0 {
		return l.gapLo, l.gapHi
	}
	l.warning(t)
	return max(l.gapLo, t-l.lastHi), max(l.gapHi, t-l.lastLo)
}

func (l *life) hasDetail(d any) bool { return slices.Contains(l.details, d) }
