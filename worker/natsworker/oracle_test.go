package natsworker_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/lease"
	"github.com/tooldeadline/tooldeadline/worker/natsworker"
)

// The rules of the oracle, by what they demand. Each returns what has broken it. Times are to the nanosecond.
var rules = map[string]func(*run) []string{
	"guarantee 1, renewals every sixth":        (*run).renewals,
	"guarantee 2, a lease and its margin":      (*run).leases,
	"guarantee 2, one function at a time":      (*run).overlaps,
	"guarantee 3, one outcome, nothing after":  (*run).outcomes,
	"guarantee 3, the outcome of the function": (*run).verdicts,
	"guarantee 5, limits stop, nothing else":   (*run).limits,
	"guarantee 6, no more than the slots":      (*run).slots,
	"guarantee 7, Run returns in time":         (*run).ends,
	"no message is lost":                       (*run).losses,
	"the queue is empty in the end":            func(r *run) []string { return r.undone },
	"each redelivery has a reason":             (*run).reasons,
}

// hit reports whether something was wrong for a worker in a time.
func (r *run) hit(number int, from, to time.Time) bool {
	return slices.ContainsFunc(r.blows, func(b blow) bool {
		return (b.number < 0 || number < 0 || b.number == number) && b.what != stops && !b.from.After(to) && !from.After(b.to)
	})
}

func (r *run) happened(what ...happening) bool {
	return slices.ContainsFunc(r.blows, func(b blow) bool { return slices.Contains(what, b.what) })
}

func (r *run) at(t time.Time) string { return t.Sub(r.begun).String() }

// saidOf returns what was said of a delivery by its worker. A server that was killed makes the same delivery again.
func (r *run) saidOf(e *execution) (all []saying) {
	for _, s := range e.by.wire.said {
		again := slices.ContainsFunc(r.executions, func(other *execution) bool {
			return other.message == e.message && other.delivery == e.delivery && other.by == e.by && other.begun.After(e.begun) && !other.begun.After(s.at)
		})
		if s.message == e.message && s.delivery == e.delivery && !s.at.Before(e.begun) && !again {
			all = append(all, s)
		}
	}
	return all
}

// again reports whether a server that was killed has made a delivery again, to the same worker, while its function works:
// it cannot be told whose renewals they are.
func (r *run) again(e *execution) bool {
	return slices.ContainsFunc(r.executions, func(other *execution) bool {
		return other != e && other.message == e.message && other.delivery == e.delivery && other.by == e.by && other.begun.Before(e.until()) && e.begun.Before(other.until())
	})
}

const renewal = "+WPI"

// first returns the renewals of a delivery from before its function begins.
func (r *run) first(e *execution) (all []time.Time) {
	for _, s := range e.by.wire.said {
		if s.message == e.message && s.delivery == e.delivery && s.what == renewal && !s.at.After(e.begun) && e.begun.Sub(s.at) <= min(r.AckWait/6, 5*time.Second) {
			all = append(all, s.at)
		}
	}
	return all
}

// renewals are sent a sixth of the lease after the request, the call of a Handler, or the renewal of a message that was
// published longer ago, and at each sixth then.
func (r *run) renewals() (broken []string) {
	every := r.AckWait / 6
	for _, e := range r.executions {
		asked := append(r.first(e), e.by.wire.asked...)
		if e.by.Consume {
			asked = append(r.first(e), e.begun)
		}
		said := slices.DeleteFunc(r.saidOf(e), func(s saying) bool { return s.what == renewal && s.at.Equal(e.begun) })
		end := e.until()
		if i := slices.IndexFunc(said, func(s saying) bool { return s.what != renewal }); i >= 0 {
			end = said[i].at
		}
		if r.hit(e.by.number, e.begun.Add(-2*time.Second), end) {
			continue
		}
		due := time.Time{}
		for i, s := range said {
			if s.what != renewal {
				break
			}
			if i == 0 && !slices.ContainsFunc(asked, func(t time.Time) bool {
				return t.Add(every).Equal(s.at)
			}) || i > 0 && !s.at.Equal(due) {
				broken = append(broken, fmt.Sprintf("%d.%d is renewed at %s", e.message, e.delivery, r.at(s.at)))
			}
			due = s.at.Add(every)
		}
		if due.IsZero() {
			due = e.begun.Add(every)
		}
		if w := e.by; !w.stopped.IsZero() && w.stopped.Before(end) { // the outcome waits for the pulls, without renewals
			end = w.stopped
		}
		if end.After(due) {
			broken = append(broken, fmt.Sprintf("%d.%d is not renewed at %s", e.message, e.delivery, r.at(due)))
		}
	}
	return broken
}

// leases: a function is alive for five sixths, or until its grace and a twentieth before the end, after its request, or the last renewal that can have arrived, and then told
// so at once; after that nothing is said.
func (r *run) leases() (broken []string) {
	for _, e := range r.executions {
		sure := r.AckWait - min(max(r.AckWait/6, e.by.Grace+r.AckWait/20), r.AckWait/2)
		said := r.saidOf(e)
		lost := errors.Is(e.cause, lease.ErrLost)
		begins := []time.Time{e.begun}
		if !e.by.Consume {
			begins = slices.Clone(e.by.wire.asked)
		}
		begins = append(begins, r.first(e)...)
		last := time.Time{} // the last time that the lease may count from
		for _, s := range said {
			if s.what == renewal && s.at.Before(e.until()) {
				begins = append(begins, s.at)
				if !e.by.Conn || !s.answered.IsZero() {
					last = s.at
				}
			}
		}
		if last.IsZero() {
			last = e.begun
		}
		// nats.go keeps a request, and sends it when it is connected again.
		kept := r.hit(e.by.number, e.begun.Add(-2*time.Second), e.begun)
		switch end := e.until(); {
		case lost && !slices.ContainsFunc(begins, func(t time.Time) bool {
			// Without a connection to ask on, a renewal begins with a probe.
			probed := !e.by.Conn && !t.Add(sure-r.AckWait/6).After(e.told)
			return t.Add(sure).Equal(e.told) || (kept || probed) && t.Add(sure).After(e.told)
		}):
			broken = append(broken, fmt.Sprintf("%d.%d has lost its lease at %s, which is no five sixths after anything", e.message, e.delivery, r.at(e.told)))
		case !lost && end.After(last.Add(sure)) && !r.again(e):
			broken = append(broken, fmt.Sprintf("%d.%d is alive at %s, its last renewal was at %s", e.message, e.delivery, r.at(end), r.at(last)))
		case lost && !r.hit(e.by.number, e.begun.Add(-2*time.Second), e.told):
			broken = append(broken, fmt.Sprintf("%d.%d has lost its lease, though nothing was wrong", e.message, e.delivery))
		}
		for _, s := range said {
			if lost && s.at.After(e.told) {
				broken = append(broken, fmt.Sprintf("%d.%d has lost its lease at %s, and said %s at %s", e.message, e.delivery, r.at(e.told), s.what, r.at(s.at)))
			}
		}
	}
	return broken
}

// overlaps: nobody works on a message beside another, unless the server was killed, which forgets what it has delivered.
func (r *run) overlaps() (broken []string) {
	if r.happened(kills) {
		return nil
	}
	for i, e := range r.executions {
		for _, other := range r.executions[:i] {
			if e.message == other.message && other.until().After(e.begun) && !r.naked(other) {
				broken = append(broken, fmt.Sprintf("%d.%d begins at %s, %d.%d works until %s", e.message, e.delivery, r.at(e.begun), other.message, other.delivery, r.at(other.until())))
			}
			if e.message == other.message && (e.delivery < other.delivery || e.delivery == other.delivery && len(r.blows) == 0) {
				broken = append(broken, fmt.Sprintf("%d.%d begins after %d.%d", e.message, e.delivery, other.message, other.delivery))
			}
		}
	}
	return broken
}

// naked reports whether a nak of an earlier delivery was on its way for so long that the server took it for one of e.
func (r *run) naked(e *execution) bool {
	for _, b := range r.blows {
		for _, w := range r.workers {
			if (b.what == keepsOut && w.number == b.number || b.what == stalls) && slices.ContainsFunc(w.wire.said, func(s saying) bool {
				return s.message == e.message && s.delivery < e.delivery && strings.HasPrefix(s.what, "-NAK") && !s.at.Before(b.from) && !s.at.After(b.to)
			}) {
				return true
			}
		}
	}
	return false
}

// outcomes: one is said about a delivery, a nak once, and nothing after it. An ack and a term are repeated until they are
// confirmed.
func (r *run) outcomes() (broken []string) {
	for _, w := range r.workers {
		outcome := map[[2]uint64]string{}
		for _, s := range w.wire.said {
			of := [2]uint64{s.message, s.delivery}
			before := outcome[of]
			if before != "" && (before != s.what || strings.HasPrefix(before, "-NAK")) && !r.happened(kills) {
				broken = append(broken, fmt.Sprintf("%s is said of %d.%d at %s, after %s", s.what, s.message, s.delivery, r.at(s.at), before))
			}
			if s.what != renewal {
				outcome[of] = s.what
			}
		}
	}
	return broken
}

// tie reports whether a function has returned at the very moment at which something was over, so that either may count.
func (e *execution) tie() bool {
	w := e.by
	return slices.ContainsFunc([]time.Time{e.beat.Add(w.Idle), e.begun.Add(w.Total), e.told.Add(w.Grace), w.stopped, w.stopped.Add(w.Drain)}, e.returned.Equal)
}

// verdicts: where nothing was wrong, the outcome that is documented is said as soon as the function has returned, or was
// abandoned.
func (r *run) verdicts() (broken []string) {
	for _, e := range r.executions {
		end := e.until()
		if e.Deaf && !e.told.IsZero() {
			end = e.told.Add(e.by.Grace)
			if e.returned.Before(end) {
				end = e.returned
			}
		}
		if e.own || e.tie() || r.hit(e.by.number, e.begun.Add(-2*time.Second), end.Add(2*time.Second)) {
			continue
		}
		stopped, _ := e.cause.(*timeout.Error)
		again := min(time.Second<<(e.delivery-1), 4*time.Second)
		var delay time.Duration
		want := ""
		late := time.Duration(0)
		stopping := !e.by.stopped.IsZero() && !e.by.stopped.After(end)
		switch last := r.MaxDeliver > 0 && e.delivery >= uint64(r.MaxDeliver); {
		case e.told.IsZero() && e.End == rejects:
			want = "+TERM broken"
		case e.told.IsZero() && (e.End == succeeds || e.End == acks || e.End == naks):
			want = "+ACK"
		case last:
			want = fmt.Sprintf("+TERM delivery %d of %d: ", e.delivery, r.MaxDeliver)
		case e.told.IsZero() && e.End == later:
			delay = 3 * time.Second
		case stopped == nil && !e.told.IsZero(), stopped != nil && stopped.Timeout() && e.delivery == 1, stopping && stopped != nil && stopped.Kind == timeout.ErrAborted: // aborted
		default:
			delay = again
		}
		if !e.told.IsZero() && end.Equal(e.told.Add(e.by.Grace)) && e.returned.After(end) && want == "" {
			delay = max(delay, e.by.Grace)
		}
		if want == "" {
			if want = "-NAK"; delay > 0 {
				want = fmt.Sprintf(`-NAK {"delay": %d}`, delay.Nanoseconds())
			}
			if stopping {
				late = time.Second // no request may be out
			}
		}
		said := slices.DeleteFunc(r.saidOf(e), func(s saying) bool { return s.what == renewal })
		switch {
		case len(said) == 0:
			broken = append(broken, fmt.Sprintf("nothing is said of %d.%d, want %s", e.message, e.delivery, want))
		case !strings.HasPrefix(said[0].what, want) || !strings.HasPrefix(want, "+TERM") && said[0].what != want:
			broken = append(broken, fmt.Sprintf("%s is said of %d.%d, want %s", said[0].what, e.message, e.delivery, want))
		case said[0].at.Before(end) || said[0].at.After(end.Add(late)):
			broken = append(broken, fmt.Sprintf("%s is said of %d.%d at %s, want at %s", said[0].what, e.message, e.delivery, r.at(said[0].at), r.at(end)))
		}
	}
	return broken
}

// limits stop a function when they are over and not before, whatever else happens.
func (r *run) limits() (broken []string) {
	for _, e := range r.executions {
		end := e.until()
		idle, total := e.beat.Add(e.by.Idle), e.begun.Add(e.by.Total)
		stopped, _ := e.cause.(*timeout.Error)
		switch {
		case e.by.Idle > 0 && end.After(idle), e.by.Total > 0 && end.After(total):
			broken = append(broken, fmt.Sprintf("%d.%d is alive at %s; begun %s, beat %s", e.message, e.delivery, r.at(end), r.at(e.begun), r.at(e.beat)))
		case stopped != nil && stopped.Kind == timeout.ErrIdle && !e.told.Equal(idle), stopped != nil && stopped.Kind == timeout.ErrTotal && !e.told.Equal(total):
			broken = append(broken, fmt.Sprintf("%d.%d is stopped at %s: %v", e.message, e.delivery, r.at(e.told), stopped))
		}
	}
	return broken
}

func (r *run) slots() (broken []string) {
	for _, e := range r.executions {
		n := 0
		for _, other := range r.executions {
			if other.by == e.by && !other.begun.After(e.begun) && other.returned.After(e.begun) {
				n++
			}
		}
		if n > e.by.Slots && !e.by.Consume {
			broken = append(broken, fmt.Sprintf("%d functions at %s", n, r.at(e.begun)))
		}
	}
	return broken
}

// ends: Run returns nil in time, and says nothing after that.
func (r *run) ends() (broken []string) {
	for _, w := range r.workers {
		if w.Consume {
			continue
		}
		stuck := errors.Is(w.err, natsworker.ErrStuck)
		if w.err != nil && !stuck {
			broken = append(broken, fmt.Sprintf("Run returns %v", w.err))
		}
		if took := w.ended.Sub(w.stopped); took > w.Drain+w.Grace+10*time.Second && !stuck {
			broken = append(broken, fmt.Sprintf("Run takes %v to return", took))
		}
		for _, s := range w.wire.said {
			// nats.go keeps an ack that was published before it has noticed an outage. It is true, however late it is.
			kept := s.what == "+ACK" && r.hit(w.number, w.ended.Add(-r.AckWait), s.at)
			if s.at.After(w.ended) && !kept {
				broken = append(broken, fmt.Sprintf("%s is said of %d.%d at %s, Run has returned at %s", s.what, s.message, s.delivery, r.at(s.at), r.at(w.ended)))
			}
		}
	}
	return broken
}

// losses: a message is done by a function that has ended well, terminated with its reason, or left where the server has
// nothing heard of its last delivery, for which there is a reason.
func (r *run) losses() (broken []string) {
	for i := range r.Messages {
		m := uint64(i + 1)
		var last *execution
		done := false
		for _, e := range r.executions {
			if e.message == m {
				last = e
				well := e.told.IsZero() && (e.End == succeeds || e.End == acks || e.End == naks && !e.own)
				done = done || well || e.tie() || e.own && e.End == acks
			}
		}
		terminated := slices.ContainsFunc(r.terms, func(a advisory) bool { return a.Sequence == m && a.Reason != "" })
		switch {
		case last == nil && r.left[m] && r.hit(-1, r.begun, time.Now()): // each delivery was lost on its way
		case last == nil:
			broken = append(broken, fmt.Sprintf("%d was never begun", m))
		case r.left[m]:
			excused := r.hit(-1, last.begun.Add(-2*time.Second), last.returned.Add(2*r.AckWait)) || r.happened(stops) || last.own && last.End == naks
			if r.MaxDeliver == 0 || !excused {
				broken = append(broken, fmt.Sprintf("%d is given up without a reason; its last delivery is %d, of which is logged %q", m, last.delivery, last.log))
			}
		case !done && !terminated && !r.happened(restarts, kills): // with which the advisory may be lost
			broken = append(broken, fmt.Sprintf("%d is gone, and nobody has done it", m))
		}
	}
	return broken
}

// reasons: a message is delivered again after a nak, or since something was wrong.
func (r *run) reasons() (broken []string) {
	for _, e := range r.executions {
		if e.delivery == 1 || r.happened(kills) {
			continue
		}
		naked := r.naked(e) || slices.ContainsFunc(r.workers, func(w *simWorker) bool {
			return slices.ContainsFunc(w.wire.said, func(s saying) bool {
				return s.message == e.message && s.delivery == e.delivery-1 && strings.HasPrefix(s.what, "-NAK") && !s.at.After(e.begun)
			})
		})
		number, from := -1, r.begun // of one that nobody has begun
		for _, other := range r.executions {
			if other.message == e.message && other.delivery == e.delivery-1 {
				number, from = other.by.number, other.begun.Add(-2*time.Second)
			}
		}
		if !naked && !r.hit(number, from, e.begun) {
			broken = append(broken, fmt.Sprintf("%d.%d is delivered at %s without a reason", e.message, e.delivery, r.at(e.begun)))
		}
	}
	return broken
}
