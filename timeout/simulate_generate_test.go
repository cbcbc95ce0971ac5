package timeout_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

var (
	errModelCaller = errors.New("the caller's reason")
	errModelHand   = errors.New("the reason of whoever aborts")
	errModelOwn    = &modelError{"the function's own"}
)

type modelError struct{ text string }

func (e *modelError) Error() string { return e.text }

// A generator draws schedules in which things happen at the boundaries of limits and
// at the same instant far more often than chance would have it.
type generator struct {
	*rand.Rand
	caller  caller
	scripts int
	holds   []int
	idles   []time.Duration // of the enclosing executions, the innermost last
	dues    []time.Duration // instants at which something is due, or would be without a beat
	around  []int           // ids of the enclosing executions
	gone    []int           // ids of executions that have probably ended

	// Each run has few features.
	manners, reports, probes, stops, clocks bool
}

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

// near returns d, or a nanosecond less or more.
func (g *generator) near(d time.Duration) time.Duration {
	return max(0, d+time.Duration(g.IntN(3)-1))
}

// sane tells limits that the script can reach from those that stand for "almost
// unlimited": a script that slept for centuries would test nothing.
func sane(d time.Duration) bool { return d > 0 && d < 1000*time.Hour }

func generate(seed uint64) *schedule {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0)), caller: caller{cancel: never, deadline: never}}
	g.reports = g.IntN(2) == 0
	g.manners = g.reports && g.IntN(2) == 0
	g.probes, g.stops, g.clocks = g.IntN(6) == 0, g.IntN(3) == 0, g.IntN(6) == 0
	c := g.config()
	switch at := g.instant(c); g.IntN(10) {
	case 0, 1:
		g.caller.cancel = at
	case 2, 3:
		g.caller.deadline = max(1, at)
	case 4:
		g.caller.deadline, g.caller.cancel = max(1, at), g.near(at)
	}
	if g.IntN(40) == 0 { // over from the start
		g.caller = pick(g, caller{cancel: 0, deadline: never}, caller{cancel: never}, caller{cancel: never, deadline: -time.Second})
	}
	for _, d := range []time.Duration{g.caller.cancel, g.caller.deadline} {
		if d != never {
			g.dues = append(g.dues, d)
		}
	}
	s := &schedule{caller: g.caller, root: g.script(c, 0)}
	for g.reports && len(s.watchers) < 2 && g.IntN(3) == 0 {
		w := watcher{from: pick(g, 0, 0, g.after(0)), to: never, manners: g.behave()}
		if g.IntN(2) == 0 {
			w.to = g.after(w.from)
		}
		s.watchers = append(s.watchers, w)
	}
	s.caller.inherited = g.caller.deadline != never && !s.root.clocked && g.IntN(3) == 0
	return s.index(g.scripts)
}

// instant is when a caller might interfere with an execution under c.
func (g *generator) instant(c timeout.Config) time.Duration {
	var ds []time.Duration
	for _, d := range []time.Duration{c.Total, c.Total / 2, c.Idle, c.Idle * 4 / 5} {
		if sane(d) {
			ds = append(ds, g.near(d))
		}
	}
	return pick(g, append(ds, time.Duration(g.Int64N(int64(time.Second))))...)
}

func (g *generator) config() timeout.Config {
	const maxInt = math.MaxInt64
	c := timeout.Config{
		Idle:  pick(g, 0, 0, 1, 2, 5, time.Millisecond, 10*time.Millisecond, 100*time.Millisecond, time.Second, time.Second, 2500*time.Millisecond, 2*time.Minute, maxInt, -time.Second),
		Grace: pick(g, 0, 0, 1, 50*time.Millisecond, time.Second, 7*time.Second, maxInt, -1, math.MinInt64),
	}
	if len(g.idles) > 0 && sane(g.idles[len(g.idles)-1]) && g.IntN(2) == 0 {
		c.Idle = max(1, g.near(g.idles[len(g.idles)-1]/pick[time.Duration](g, 3, 2, 1, 1)))
	}
	switch unit := c.Idle; {
	case g.IntN(3) == 0:
	case sane(unit) && g.IntN(4) > 0:
		c.Total = pick(g, g.near(unit), g.near(2*unit), 3*unit, g.near(4*unit), 10*unit, unit/2)
	default:
		c.Total = pick(g, 1, 250*time.Millisecond, time.Second, 1800*time.Second, maxInt, maxInt-1, -1, math.MinInt64)
	}
	if g.IntN(4) == 0 && c.Total <= maxInt/2 {
		c.Reserve = min(1000*time.Hour, pick(g, 1, time.Millisecond, time.Second, -1, g.near(max(c.Total, 0)), max(c.Total, 0)/3, max(c.Idle, 0), maxInt))
	}
	return c
}

// gap is the time between two steps.
func (g *generator) gap() time.Duration {
	unit := 100 * time.Millisecond
	if n := len(g.idles); n > 0 {
		i := n - 1
		if g.IntN(5) == 0 {
			i = g.IntN(n)
		}
		if sane(g.idles[i]) {
			unit = g.idles[i]
		}
	}
	switch g.IntN(16) {
	case 0, 1, 2:
		return unit - 1
	case 3, 4:
		return unit * 4 / 5
	case 5:
		return g.near(unit * 4 / 5)
	case 6, 7:
		return unit / 2
	case 8, 9:
		return 0
	case 10:
		return g.near(unit)
	case 11:
		return unit * time.Duration(2+g.IntN(2))
	case 12:
		return pick(g, 1, time.Microsecond, time.Millisecond-1, time.Millisecond, time.Millisecond+1)
	default:
		return time.Duration(g.Int64N(int64(unit)))
	}
}

// after returns an instant that is not before now.
func (g *generator) after(now time.Duration) time.Duration {
	at := now + g.gap()
	if g.IntN(6) == 0 && len(g.dues) > 0 {
		at = g.near(pick(g, g.dues...))
	}
	return max(now, at)
}

// act is what a hook or a handler does.
func (g *generator) act(long int) act {
	a := act{how: pick(g, quick, quick, slow, g.IntN(hows))}
	if a.how == slow {
		a.long = pick(g, 1, 100*time.Millisecond-1, 100*time.Millisecond, 100*time.Millisecond+1, g.gap(), g.gap(), time.Duration(long)*time.Hour)
	}
	return a
}

func (g *generator) behave() (m manners) {
	if !g.manners {
		return m
	}
	for range 1 + g.IntN(3) {
		m.acts[g.IntN(hookCount)] = g.act(g.IntN(2))
	}
	m.enrich = g.IntN(enrichments)
	return m
}

func (g *generator) script(c timeout.Config, start time.Duration) *script {
	sc := &script{
		id: g.scripts, config: c, do: g.IntN(2) == 0, observe: g.IntN(5) == 0, attentive: g.IntN(4) > 0,
		result: result(g.IntN(int(results))), recovers: g.IntN(2) == 0, clocked: g.clocks && g.IntN(2) == 0,
	}
	g.scripts++
	if g.reports && g.IntN(3) > 0 {
		m := g.behave()
		sc.hooks = &m
	}
	if g.reports && g.IntN(3) == 0 {
		sc.logger = new(act)
		if g.manners {
			*sc.logger = g.act(0)
		}
	}
	if g.IntN(20) == 0 {
		sc.need = min(1000*time.Hour, pick(g, -1, 1, max(0, g.near(c.Total)), g.gap(), time.Minute))
	}
	g.around = append(g.around, sc.id)
	g.idles = append(g.idles, c.Idle)
	for _, d := range []time.Duration{c.Total, c.Idle, c.Total - c.Reserve} {
		if sane(d) {
			g.dues = append(g.dues, start+d)
		}
	}
	now := start
	for range g.IntN(7) {
		now = g.after(now)
		st := g.step(now)
		sc.steps = append(sc.steps, st)
		switch st.op {
		case opRun:
			now = max(now, st.sub.end)
		case opBurst:
			now += time.Duration(st.n) * st.every
		case opHold: // longer than the limit, mostly
			now += time.Duration(g.IntN(3)) * g.gap()
		}
	}
	sc.end = g.after(now)
	if sc.attentive {
		if g.IntN(3) == 0 {
			sc.end += 1000 * time.Hour // until it is stopped, if anything does
		}
		grace := 7 * time.Second
		if sane(c.Grace) {
			grace = c.Grace
		}
		sc.linger = pick(g, 0, 0, 0, 1, grace/2, grace-1, grace, grace+1, 2*grace, g.gap())
		for range g.IntN(3) {
			if st := g.step(0); st.op != opRun && st.op != opBurst && st.op != opProbe {
				sc.late = append(sc.late, st)
			}
		}
	}
	g.around = g.around[:len(g.around)-1]
	g.idles = g.idles[:len(g.idles)-1]
	g.gone = append(g.gone, sc.id)
	return sc
}

func (g *generator) step(now time.Duration) step {
	st := step{at: now, of: g.around[len(g.around)-1]}
	switch g.IntN(8) {
	case 0:
		st.of = pick(g, g.around...)
	case 1:
		if len(g.gone) > 0 {
			st.of = pick(g, g.gone...)
		}
	}
	switch r := g.IntN(24); {
	case r < 3:
		st.op, st.hold = opHold, len(g.holds)
		g.holds = append(g.holds, st.hold)
	case r < 6 && len(g.holds) > 0:
		st.op, st.hold = opRelease, pick(g, g.holds...)
	case r < 9 && len(g.around) < 4 && g.scripts < 6:
		st.op, st.of = opRun, 0
		st.sub = g.script(g.config(), now)
		if !g.clocks && g.IntN(4) == 0 {
			st.sub.between = now + 1 + time.Duration(g.Int64N(1+int64(g.gap())))
		}
	case r < 10 && g.IntN(6) == 0:
		st.op, st.n = opBurst, 100+g.IntN(200)
		st.every = pick(g, 0, 0, 0, 1, 4*time.Microsecond, 10*time.Microsecond, 20*time.Microsecond)
	case r < 12 && g.stops:
		st.op = pick(g, opAbort, opClose, opClose)
	case r < 14:
		st.op = opLook
	case r < 17 && g.probes:
		st.op, st.of = opProbe, g.around[len(g.around)-1]
		st.every, st.until = pick(g, 0, g.gap(), 2*time.Second-1, 2*time.Second, time.Hour), g.after(now)
	default:
		st.op = pick(g, opBeat, opBeat, opDetail, opMonitor)
	}
	return st
}
