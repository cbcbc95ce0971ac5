package timeout_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

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
}

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

// around returns d, or a nanosecond less or more.
func (g *generator) near(d time.Duration) time.Duration {
	return max(0, d+time.Duration(g.IntN(3)-1))
}

// sane tells limits that the script can reach from those that stand for "almost
// unlimited": a script that slept for centuries would test nothing.
func sane(d time.Duration) bool { return d > 0 && d < 1000*time.Hour }

func generate(seed uint64) *schedule {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0)), caller: caller{never, never}}
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
		g.caller = pick(g, caller{0, never}, caller{never, 0}, caller{never, -time.Second})
	}
	for _, d := range []time.Duration{g.caller.cancel, g.caller.deadline} {
		if d != never {
			g.dues = append(g.dues, d)
		}
	}
	s := &schedule{caller: g.caller, root: g.script(c, 0)}
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
		Grace: pick(g, 0, 0, 1, 50*time.Millisecond, time.Second, 7*time.Second, maxInt, -1),
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

func (g *generator) script(c timeout.Config, start time.Duration) *script {
	sc := &script{id: g.scripts, config: c, do: g.IntN(2) == 0, hooks: g.IntN(2) == 0, observe: g.IntN(5) == 0, attentive: g.IntN(4) > 0, result: result(g.IntN(int(results)))}
	g.scripts++
	g.around = append(g.around, sc.id)
	g.idles = append(g.idles, c.Idle)
	for _, d := range []time.Duration{c.Total, c.Idle} {
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
			if st := g.step(0); st.op != opRun && st.op != opBurst {
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
	switch r := g.IntN(20); {
	case r < 3:
		st.op, st.hold = opHold, len(g.holds)
		g.holds = append(g.holds, st.hold)
	case r < 6 && len(g.holds) > 0:
		st.op, st.hold = opRelease, pick(g, g.holds...)
	case r < 9 && len(g.around) < 4 && g.scripts < 6:
		st.op, st.of = opRun, 0
		st.sub = g.script(g.config(), now)
	case r < 10 && g.IntN(6) == 0:
		st.op, st.n = opBurst, 100+g.IntN(200)
		st.every = pick(g, 0, 0, 0, 1, 4*time.Microsecond, 10*time.Microsecond, 20*time.Microsecond)
	default:
		st.op = pick(g, opBeat, opBeat, opDetail, opMonitor)
	}
	return st
}

var (
	errModelCaller = errors.New("the caller's reason")
	errModelOwn    = &modelError{"the function's own"}
)
