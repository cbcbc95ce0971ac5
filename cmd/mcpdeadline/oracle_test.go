package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/calls"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/host"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
)

// forever is longer than any run.
const forever = 10_000 * time.Hour

// An oracle judges what has passed in a run. Each method is a rule.
type oracle struct {
	*plan
	*history
	asked   map[string]*passed   // the host's requests, by id
	batched map[string]bool      // those of batches
	got     map[string][]*passed // answers to them
	cancels map[string]time.Duration
	wrong   []string
}

func (p *plan) judge(h *history) []string {
	o := &oracle{plan: p, history: h, asked: make(map[string]*passed), batched: make(map[string]bool), got: make(map[string][]*passed), cancels: make(map[string]time.Duration)}
	for i := range h.all {
		m := &h.all[i]
		one := []*passed{m}
		if strings.HasPrefix(m.line, "[") {
			var items []json.RawMessage
			_ = json.Unmarshal([]byte(m.line), &items)
			one = nil
			for _, item := range items {
				part := &passed{at: m.at, dir: m.dir, run: m.run, line: string(item)}
				_ = json.Unmarshal(item, &part.simMessage)
				one = append(one, part)
				o.batched[string(part.ID)] = true
			}
		}
		for _, m := range one {
			switch {
			case m.dir == "h→" && m.Method == "notifications/cancelled":
				o.cancels[string(m.Params.RequestID)] = m.at
			case m.dir == "h→" && m.Method != "" && m.ID != nil:
				o.asked[string(m.ID)] = m
			case m.dir == "→h" && m.Method == "":
				o.got[string(m.ID)] = append(o.got[string(m.ID)], m)
			}
		}
	}
	o.oneAnswer()
	o.atItsInstant()
	o.nothingLostOrInvented()
	o.keepAlives()
	o.onceAtTheServer()
	o.budgets()
	o.doubts()
	o.kills()
	o.ends()
	return o.wrong
}

func (o *oracle) say(format string, args ...any) {
	o.wrong = append(o.wrong, fmt.Sprintf(format, args...))
}

// oneAnswer: each request has one answer, and never two. One that the host has cancelled has none after that, and what the
// server answers when it has read of that is dropped, at the very instant too. SPEC 7.8.
func (o *oracle) oneAnswer() {
	for id, m := range o.asked {
		n, cancelled := len(o.got[id]), false
		if at, is := o.cancels[id]; is {
			cancelled = true
			for _, a := range o.got[id] {
				if a.at > at && !o.batched[id] { // it may wait for the rest of the batch
					o.say("%s was cancelled at %v, and answered at %v: %s", id, at, a.at, a.line)
				}
			}
		}
		if n > 1 || n == 0 && !cancelled {
			o.say("%s of %v has %d answers", id, m.at, n)
		}
	}
	told, late := make(map[string]bool), make(map[int]bool) // of the cancellation; the answers after that, by their tags
	for i := range o.all {
		switch m := &o.all[i]; {
		case m.dir == "→s" && m.Method == "notifications/cancelled" && m.Params.Tag > 0:
			told[string(m.Params.RequestID)] = true
		case m.dir == "s→" && m.Result != nil && told[string(m.ID)]:
			late[m.Result.Tag] = true
		case m.dir == "→h" && m.Result != nil && late[m.Result.Tag]:
			o.say("at %v the host got the answer to its cancellation: %s", m.at, m.line)
		}
	}
	for id, all := range o.got {
		if o.asked[id] == nil {
			o.say("nobody has asked for %s", all[0].line)
		}
	}
}

// from returns what a run has sent, from a time on.
func (o *oracle) from(run int, at time.Duration) (sent []*passed) {
	for i := range o.all {
		if m := &o.all[i]; m.dir == "s→" && m.run == run && m.at >= at {
			sent = append(sent, m)
		}
	}
	return sent
}

// arrival returns when a request has arrived at a server, or nil.
func (o *oracle) arrival(id string) *passed {
	for i := range o.all {
		if m := &o.all[i]; m.dir == "→s" && string(m.ID) == id && m.Method != "" {
			return m
		}
	}
	return nil
}

// answered returns when a server has answered a request that has arrived there.
func (o *oracle) answered(m *passed) time.Duration {
	for _, s := range o.from(m.run, m.at) {
		if s.Method == "" && jsonrpc.Alike(string(s.ID), string(m.ID)) {
			return s.at
		}
	}
	return forever
}

func (o *oracle) lifeOf(run int) (end time.Duration, ends bool) {
	r := o.runs[run-1]
	return r.ended.Sub(o.begun), true
}

// limits returns the instants at which a limit of a request may fire: more than one where a sign of life comes at the
// instant of the limit. SPEC 3.1, 4.6, 16.8.
func (o *oracle) limits(m *passed) (at []time.Duration) {
	at = o.limitsFrom(m, m.at)
	if slices.ContainsFunc(o.all, func(e passed) bool { return e.at == m.at && e.Method == "sampling/createMessage" }) {
		at = append(at, o.limitsFrom(m, m.at+1)...) // what the server asks as the request comes may be seen before it
	}
	return at
}

// limitsFrom returns them as what the server has shown since an instant has moved them.
func (o *oracle) limitsFrom(m *passed, since time.Duration) (at []time.Duration) {
	total, idle := o.Total, o.Idle
	if total > 0 && idle > total { // what the proxy does with such flags
		idle = total
	}
	if m.Method != "tools/call" {
		if total == 0 && idle == 0 {
			total, idle = 30*time.Minute, 2*time.Minute
		}
		least := func(d time.Duration) time.Duration {
			if d > 0 {
				return max(d, calls.LeastLimit)
			}
			return 0
		}
		total, idle = least(total), least(idle)
	}
	end := forever
	if total > 0 {
		end = m.at + total
	}
	if idle == 0 {
		return append(at, end)
	}
	type event struct {
		at   time.Duration
		hold int
	}
	var events []event
	token := ""
	if a := o.arrival(string(m.ID)); a != nil {
		token = string(a.Params.Meta.Token)
	}
	for i := range o.all {
		switch e := &o.all[i]; {
		case e.at < since || e.dir != "s→":
		case e.Method == "notifications/progress" && m.Method == "tools/call" && string(e.Params.Token) == token,
			e.Method == "notifications/message" && o.LogsCount:
			events = append(events, event{e.at, 0})
		case e.Method == "sampling/createMessage":
			until, _ := o.lifeOf(e.run)
			id := string(e.ID)
			if e.run > 1 { // when a server is started again, its ids begin anew
				id = strconv.Quote(fmt.Sprintf("run %d: %s", e.run, e.ID))
			}
			for j := range o.all {
				if a := &o.all[j]; a.dir == "h→" && a.Method == "" && string(a.ID) == id && a.at >= e.at {
					until = min(until, a.at)
				}
			}
			events = append(events, event{e.at, 1}, event{until, -1})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	last, holds := m.at, 0
	for _, e := range events {
		if holds == 0 && e.at >= last+idle && last+idle <= end {
			at = append(at, last+idle)
			if e.at > last+idle {
				return at
			}
		}
		last, holds = e.at, holds+e.hold
	}
	if holds > 0 {
		return append(at, end)
	}
	return append(at, min(end, last+idle))
}

// expected returns the instants at which a request may be answered.
func (o *oracle) expected(id string, m *passed) (at []time.Duration) {
	arrived := o.arrival(id)
	var ends []time.Duration // of the servers that may have it
	answer, lived := forever, forever
	if arrived != nil {
		answer = o.answered(arrived)
		lived, _ = o.lifeOf(arrived.run)
		ends = []time.Duration{lived}
	} else {
		for _, r := range o.runs {
			if end := r.ended.Sub(o.begun); end >= m.at {
				ends = append(ends, end)
			}
		}
	}
	for _, limit := range o.limits(m) {
		if answer <= limit {
			at = append(at, answer)
		}
		for _, end := range ends {
			if end <= limit && end <= answer {
				at = append(at, end)
			}
		}
		if answer < limit || arrived != nil && lived < limit {
			continue
		}
		if arrived == nil || arrived.at >= limit || m.Method != "tools/call" || o.Grace == 0 {
			at = append(at, limit)
		}
		if m.Method != "tools/call" {
			continue
		}
		wait := o.Grace - min(o.Grace/10, 100*time.Millisecond)
		if o.Total > 0 {
			wait = min(wait, max(m.at+o.Total-limit, calls.Overdue))
		}
		latest := limit + wait
		var late []time.Duration
		for run := range o.runs {
			if arrived != nil && arrived.run != run+1 {
				continue
			}
			for _, s := range o.from(run+1, limit) {
				late = append(late, min(latest, s.at+calls.Settle))
				if s.at > limit { // what comes at the very instant may have been too early to count
					break
				}
			}
		}
		last := latest
		if answer <= latest && answer > limit { // and it is not waited for after that
			last = answer
		}
		late = append(append(late, latest, answer), ends...)
		at = append(at, slices.DeleteFunc(late, func(x time.Duration) bool { return x > last })...)
	}
	return at
}

// atItsInstant: a request is answered when the server answers it, when its server ends, at the instant of its limit, or
// within what is waited for after that. What the server has answered before the limit is passed on. SPEC 7.7, 8.11, 16.8.
func (o *oracle) atItsInstant() {
	for id, m := range o.asked {
		_, cancelled := o.cancels[id]
		if len(o.got[id]) != 1 || o.got[id][0].at >= o.End || cancelled || m.Method == "ping" {
			continue
		}
		a := o.got[id][0]
		at := o.expected(id, m)
		if o.batched[id] { // answered with the last of them
			if len(at) == 0 || slices.Min(at) > a.at {
				o.say("%s of %v, one of a batch, was answered at %v, before %v", id, m.at, a.at, at)
			}
			continue
		}
		if !slices.Contains(at, a.at) {
			o.say("%s of %v was answered at %v, want one of %v, limits %v: %s", id, m.at, a.at, at, o.limits(m), a.line)
		}
	}
}

// nothingLostOrInvented: what the server sends reaches the host once, at once, in order, and nothing else does. Nothing
// about a call follows its answer. SPEC 7.4.
func (o *oracle) nothingLostOrInvented() {
	said := make(map[int]*passed)
	heard := make(map[int]*passed)
	last := make(map[int]int) // position of what came last, by run
	place := make(map[int]int)
	for i := range o.all {
		m := &o.all[i]
		switch tag := m.Params.Tag; {
		case m.dir == "s→" && tag > 0:
			said[tag], place[tag] = m, i
		case m.dir == "→h" && tag > 0:
			s := said[tag]
			if s == nil || heard[tag] != nil || s.at != m.at {
				o.say("%s at %v, not as it was sent: %+v", m.line, m.at, s)
				continue
			}
			heard[tag] = m
			if m.line != s.line && s.run == 1 && s.Method != "notifications/progress" { // ids are renamed later, and progress is raised
				o.say("%s was %s", m.line, s.line)
			}
			if place[tag] < last[s.run] {
				o.say("%s has been overtaken", m.line)
			}
			last[s.run] = place[tag]
		case m.dir == "→h" && m.Method != "" && m.Method != "notifications/progress":
			atEnd := slices.ContainsFunc(o.runs, func(r *virtual) bool { return r.ended.Sub(o.begun) == m.at })
			if m.Method == "notifications/cancelled" && !atEnd || m.Method != "notifications/cancelled" && len(o.runs) == 1 {
				o.say("%s at %v was invented", m.line, m.at)
			}
		}
	}
	for tag, s := range said {
		lived, _ := o.lifeOf(s.run)
		if heard[tag] != nil || s.at >= o.End || s.at >= lived {
			continue
		}
		if s.Method == "notifications/progress" { // of a call that has its answer, or whose host does not care
			m := o.asked[string(s.Params.Token)]
			if m == nil || m.Params.Meta.Token == nil {
				continue
			}
			if at, is := o.cancels[string(m.ID)]; is && at <= s.at {
				continue
			}
			if a := o.got[string(m.ID)]; len(a) > 0 && a[0].at <= s.at || slices.ContainsFunc(o.limits(m), func(l time.Duration) bool { return l <= s.at }) {
				continue
			}
		}
		o.say("lost: %s at %v", s.line, s.at)
	}
	over := make(map[string]bool)
	for i := range o.all {
		if m := &o.all[i]; m.dir != "→h" {
			continue
		} else if m.Method == "" {
			over[string(m.ID)] = true
		} else if token := string(m.Params.Token); m.Method == "notifications/progress" && (over[token] || o.asked[token] == nil || o.asked[token].Params.Meta.Token == nil) {
			o.say("%s at %v follows the answer", m.line, m.at)
		}
	}
}

// keepAlives: the host hears of a call that it has asked to hear of whenever nothing else was sent for the interval, and
// progress increases. SPEC 7.3.
func (o *oracle) keepAlives() {
	for id, m := range o.asked {
		if m.Method != "tools/call" || m.Params.Meta.Token == nil || o.batched[id] {
			continue
		}
		until := slices.Min(o.limits(m))
		if a := o.got[id]; len(a) > 0 {
			until = min(until, a[0].at)
		} else if at, is := o.cancels[id]; is {
			until = min(until, at)
		}
		until = min(until, o.End)
		last, progress := m.at, -1.0
		for i := range o.all {
			n := &o.all[i]
			if n.dir != "→h" || n.Method != "notifications/progress" || string(n.Params.Token) != id {
				continue
			}
			gap := n.at - last
			if n.Params.Tag == 0 && (o.Keep == 0 || gap != o.Keep && (o.Total > 0 || o.Idle > 0 || gap%o.Keep != 0)) {
				o.say("%s at %v comes after %v", n.line, n.at, gap)
			}
			if o.Keep > 0 && gap > o.Keep && n.at <= until && (o.Total > 0 || o.Idle > 0) {
				o.say("nothing was heard of %s for %v before %v", id, gap, n.at)
			}
			if n.Params.Progress <= progress {
				o.say("%s at %v after %v", n.line, n.at, progress)
			}
			last, progress = n.at, n.Params.Progress
		}
		if o.Keep > 0 && until-last > o.Keep && (o.Total > 0 || o.Idle > 0) {
			o.say("nothing was heard of %s from %v to %v", id, last, until)
		}
	}
}

// onceAtTheServer: what the host sends reaches a server once at most, and in order; a request may wait longer than a
// notification. One server that reads gets everything. A call that is stopped is cancelled there, and no other.
func (o *oracle) onceAtTheServer() {
	arrived := make(map[int]bool)
	lastRequest, lastOther := 0, 0
	stops := o.stops()
	doubted := func(m *passed) bool {
		begun := o.runs[m.run-1].begun.Sub(o.begun)
		return slices.ContainsFunc(stops, func(stop time.Duration) bool { return begun <= stop && stop <= m.at })
	}
	cancelled := make(map[string]int)
	for i := range o.all {
		m := &o.all[i]
		if m.dir != "→s" {
			continue
		}
		tag := m.Params.Tag
		if m.Method == "notifications/cancelled" && tag == 0 {
			id := string(m.Params.RequestID)
			cancelled[id]++
			if q := o.asked[id]; q == nil || cancelled[id] > 1 || m.at < slices.Min(o.limits(q)) && m.at < o.End {
				o.say("%s at %v", m.line, m.at)
			}
		}
		if tag == 0 {
			continue
		}
		if arrived[tag] {
			o.say("%s has arrived twice", m.line)
		}
		arrived[tag] = true
		// A notification overtakes requests that wait for a server in doubt; a request overtakes nothing.
		if tag < lastRequest || tag < lastOther && (m.ID == nil || !doubted(m)) {
			o.say("%s at %v has been overtaken", m.line, m.at)
		}
		if m.ID != nil {
			lastRequest = tag
		} else {
			lastOther = tag
		}
	}
	if len(o.runs) > 1 || slices.ContainsFunc(o.Acts, func(a act) bool { return a.Server.Blocks > 0 }) {
		return
	}
	for _, m := range o.all {
		if id := string(m.ID); m.dir == "h→" && m.Params.Tag > 0 && !arrived[m.Params.Tag] && m.Method != "ping" && m.at+o.Starts < o.End && len(o.got[id])+len(o.cancels) == 0 {
			o.say("%s of %v has not arrived", m.line, m.at)
		}
	}
	for id, m := range o.asked {
		a, arrived := o.got[id], o.arrival(id)
		if len(a) != 1 || a[0].Result == nil || a[0].Result.Meta["io.github.tooldeadline/outcome"] == nil || a[0].at >= o.End || arrived == nil || cancelled[id] == 1 {
			continue
		}
		if o.answered(arrived) > slices.Max(o.limits(m)) { // otherwise it was too late for that
			o.say("%s of %v was stopped, and cancelled %d times", id, m.at, cancelled[id])
		}
	}
}

// budgets: a call that arrives at a server says what was left of its total when it was sent, and how long it may be silent
// if nothing but progress counts. SPEC 18.4.
func (o *oracle) budgets() {
	ms := func(d time.Duration) float64 { return float64(d.Milliseconds()) }
	for i := range o.all {
		m := &o.all[i]
		q := o.asked[string(m.ID)]
		if m.dir != "→s" || m.Method != "tools/call" || q == nil {
			continue
		}
		idle := 0.0
		if !o.LogsCount {
			idle = ms(o.Idle)
			if o.Total > 0 {
				idle = min(idle, ms(o.Total))
			}
		}
		b := m.Params.Meta.Budget
		least := min(max(ms(q.at+o.Total-m.at), 1), ms(o.Total)) // it may have waited until the server has read it
		if b.LeftMs < least || b.LeftMs > ms(o.Total) || b.IdleMs != idle {
			o.say("%s at %v, want at least %v and a silence of %v ms", m.line, m.at, least, idle)
		}
	}
}

// stops returns the instants at which a request may have been stopped.
func (o *oracle) stops() (at []time.Duration) {
	for id, m := range o.asked {
		at = append(at, o.limits(m)...)
		if cancelled, is := o.cancels[id]; is {
			at = append(at, cancelled)
		}
	}
	return at
}

// doubts: what the host asks while a server is in doubt waits until that has said something, or for the next one. SPEC 16.4.
func (o *oracle) doubts() {
	for id, m := range o.asked {
		a, limits := o.arrival(id), o.limits(m)
		if _, cancelled := o.cancels[id]; o.Ping == 0 || cancelled || len(limits) > 1 || a == nil || a.at >= limits[0] || o.answered(a) <= limits[0] {
			continue
		}
		since, r := limits[0], o.runs[a.run-1]
		proved, ended := forever, r.ended.Sub(o.begun)
		if said := o.from(a.run, since); len(said) > 0 {
			proved = said[0].at
		}
		for id, m := range o.asked {
			if m.at <= since || m.at >= min(proved, ended, o.End) || m.Method == "ping" || o.batched[id] {
				continue
			}
			at := o.arrival(id)
			if at != nil && at.run == a.run && at.at < proved {
				o.say("%s of %v has reached run %d at %v, in doubt since %v", id, m.at, a.run, at.at, since)
			}
			if got := o.got[id]; at == nil && r.killed && ended < min(proved, o.End) && len(got) > 0 && got[0].at == ended && !slices.Contains(o.limits(m), ended) {
				o.say("%s of %v was lost with run %d, in doubt since %v", id, m.at, a.run, since)
			}
		}
	}
}

// kills: a server is killed only if it has said nothing since a request was stopped, for the grace and the time of -ping,
// and one that has is. SPEC 16.4.
func (o *oracle) kills() {
	stops := o.stops()
	for _, r := range o.runs {
		begun, end := r.begun.Sub(o.history.begun), r.ended.Sub(o.history.begun)
		busy := slices.ContainsFunc(o.Acts, func(a act) bool { return a.Server.Busy })
		if r.killed && (r.termed.IsZero() || r.ended.Sub(r.termed) != server.TermLimit) {
			quiet := o.Grace + o.Ping/2*2
			if o.Ping == 0 || !slices.ContainsFunc(stops, func(stop time.Duration) bool {
				after := o.from(r.run, stop)
				silent := !slices.ContainsFunc(after, func(m *passed) bool { return m.at > stop && m.at < end })
				return stop >= begun && silent && (end == stop+quiet || busy && end > stop+quiet)
			}) {
				o.say("run %d was killed at %v: %v", r.run, end, r.end)
			}
		}
		if o.Ping == 0 || busy {
			continue
		}
		for id, m := range o.asked {
			a, arrived := o.got[id], o.arrival(id)
			if arrived == nil || arrived.run != r.run || len(a) != 1 || a[0].at < slices.Min(o.limits(m)) || o.answered(arrived) <= slices.Max(o.limits(m)) {
				continue
			}
			stop := slices.Max(o.limits(m))
			due := stop + o.Grace + o.Ping
			if due < o.End && end > due && r.termed.IsZero() && !slices.ContainsFunc(o.from(r.run, slices.Min(o.limits(m))), func(m *passed) bool { return m.at <= due }) && arrived.at < stop {
				o.say("run %d has said nothing since %v, and lives until %v", r.run, stop, end)
			}
		}
	}
}

// ends: at the end of stdin the server has 2 s to end, and 3 s more after SIGTERM; then it is killed. The program ends
// well, and soon.
func (o *oracle) ends() {
	if o.code != 0 || o.ended > o.End+server.CloseLimit+server.TermLimit+host.ReadLimit {
		o.say("the program ended after %v with %d", o.ended, o.code)
	}
	for i, r := range o.runs {
		end, termed := r.ended.Sub(o.history.begun), r.termed.Sub(o.history.begun)
		switch last := i == len(o.runs)-1; {
		case !r.termed.IsZero() && (end < termed || termed != o.End+server.CloseLimit):
			o.say("run %d was asked to end at %v", r.run, termed)
		case end > o.End+server.CloseLimit && r.termed.IsZero(), end > o.End+server.CloseLimit+server.TermLimit, !last && end > o.End:
			o.say("run %d has ended at %v", r.run, end)
		}
	}
}
