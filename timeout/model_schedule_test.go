package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A schedule is everything that one run of the model test does: the caller's
// context and the script of the function, nested executions included. All
// instants are durations since the outermost execution started.
type schedule struct {
	caller  caller
	root    *script
	scripts []*script // by id; only those that the generator made, reached or not
}

// A caller is the context that the outermost execution is given.
type caller struct {
	cancel   time.Duration // never, or when it is cancelled, with errCaller as the cause
	deadline time.Duration // never, or its deadline; 0 or less is over from the start
}

const never = time.Duration(math.MaxInt64)

// A script is one execution.
type script struct {
	id     int
	config timeout.Config
	do     bool // Do instead of Run
	hooks  bool
	steps  []step
	end    time.Duration // when it returns, if it is not busy then
	result result

	// An attentive function also waits for its context. When that is done it lingers,
	// deaf, takes the late steps, whose instants do not count, and returns.
	attentive bool
	linger    time.Duration
	late      []step
}

// A result is what a function returns.
type result int

const (
	resultNil result = iota
	resultOwn        // an error of its own
	resultCtx        // ctx.Err()
	resultMix        // its own, together with the cause of the context
	resultSub        // what the last nested execution gave
	results
)

func (r result) String() string {
	return [...]string{"nil", "errModelOwn", "ctx.Err()", "errModelOwn with the cause", "what the last nested one gave"}[r]
}

type op int

const (
	opBeat op = iota
	opDetail
	opMonitor
	opBurst
	opHold
	opRelease
	opRun
)

func (o op) String() string {
	return [...]string{"Beat", "BeatWith", "Monitor.Beat", "burst", "Hold", "release", "Run"}[o]
}

// A step is done at its instant, or as soon as the function gets there.
type step struct {
	at    time.Duration
	op    op
	of    int           // beat, Hold: the id of the execution whose context is used; it may be over
	n     int           // burst: how many beats
	every time.Duration // burst: time between two
	hold  int           // Hold, release: which
	sub   *script       // Run
}

func (s *schedule) String() string {
	var b strings.Builder
	if s.caller.cancel != never {
		fmt.Fprintf(&b, "caller cancels at %v\n", s.caller.cancel)
	}
	if s.caller.deadline != never {
		fmt.Fprintf(&b, "caller has a deadline at %v\n", s.caller.deadline)
	}
	s.root.print(&b, "")
	return b.String()
}

func (sc *script) print(b *strings.Builder, indent string) {
	fmt.Fprintf(b, "%sexecution %d: total %v, idle %v, grace %v\n", indent, sc.id, sc.config.Total, sc.config.Idle, sc.config.Grace)
	indent += "    "
	for _, st := range sc.steps {
		fmt.Fprintf(b, "%sat %v %v\n", indent, st.at, st)
		if st.sub != nil {
			st.sub.print(b, indent)
		}
	}
	fmt.Fprintf(b, "%sat %v return %v\n", indent, sc.end, sc.result)
	if !sc.attentive {
		fmt.Fprintf(b, "%signores its context\n", indent)
		return
	}
	fmt.Fprintf(b, "%sonce its context is done, return after %v", indent, sc.linger)
	for _, st := range sc.late {
		fmt.Fprintf(b, ", with %v", st)
	}
	b.WriteByte('\n')
}

func (st step) String() string {
	switch st.op {
	case opBurst:
		return fmt.Sprintf("%v of %d, %v apart, of %d", st.op, st.n, st.every, st.of)
	case opHold:
		return fmt.Sprintf("%v #%d of %d", st.op, st.hold, st.of)
	case opRelease:
		return fmt.Sprintf("%v #%d", st.op, st.hold)
	case opRun:
		return "Run"
	default:
		return fmt.Sprintf("%v of %d", st.op, st.of)
	}
}

// clone gives a deep copy, for shrinking.
func (sc *script) clone() *script {
	c := *sc
	c.steps, c.late = slices.Clone(sc.steps), slices.Clone(sc.late)
	for i, st := range c.steps {
		if st.sub != nil {
			c.steps[i].sub = st.sub.clone()
		}
	}
	return &c
}

// walk calls f for the script and those nested in it, outermost first.
func (sc *script) walk(f func(*script)) {
	f(sc)
	for _, st := range sc.steps {
		if st.sub != nil {
			st.sub.walk(f)
		}
	}
}

// index fills in scripts. The ids stay, so that steps still mean the same execution.
func (s *schedule) index(n int) *schedule {
	s.scripts = make([]*script, n)
	s.root.walk(func(sc *script) { s.scripts[sc.id] = sc })
	return s
}

// simpler gives schedules that are one notch simpler than s.
func (s *schedule) simpler() []*schedule {
	var out []*schedule
	add := func(change func(c *schedule)) {
		c := &schedule{caller: s.caller, root: s.root.clone()}
		c.index(len(s.scripts))
		change(c)
		out = append(out, c.index(len(s.scripts)))
	}
	if s.caller != (caller{never, never}) {
		add(func(c *schedule) { c.caller = caller{never, never} })
	}
	s.root.walk(func(sc *script) {
		for i, st := range sc.steps {
			add(func(c *schedule) { c.scripts[sc.id].steps = slices.Delete(c.scripts[sc.id].steps, i, i+1) })
			if st.n > 130 {
				add(func(c *schedule) { c.scripts[sc.id].steps[i].n = 130 })
			}
		}
		if len(sc.late) > 0 {
			add(func(c *schedule) { c.scripts[sc.id].late = nil })
		}
		if sc.linger > 0 {
			add(func(c *schedule) { c.scripts[sc.id].linger = 0 })
		}
		if sc.result != resultNil {
			add(func(c *schedule) { c.scripts[sc.id].result = resultNil })
		}
		for _, d := range []func(*timeout.Config) *time.Duration{
			func(c *timeout.Config) *time.Duration { return &c.Idle },
			func(c *timeout.Config) *time.Duration { return &c.Total },
			func(c *timeout.Config) *time.Duration { return &c.Grace },
		} {
			if *d(&sc.config) != 0 {
				add(func(c *schedule) { *d(&c.scripts[sc.id].config) = 0 })
			}
		}
	})
	return out
}

// A generator draws schedules in which things happen at the boundaries of limits and
// at the same instant far more often than chance would have it.
type generator struct {
	*rand.Rand
	caller  caller
	scripts int
	holds   []int
	idles   []time.Duration // of the executions around, the innermost last
	dues    []time.Duration // instants at which something is due, or would be without a beat
	around  []int           // ids of the executions around
	gone    []int           // ids of executions that have probably ended
}

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

// around gives d, or a nanosecond less or more.
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

// after gives an instant that is not before now.
func (g *generator) after(now time.Duration) time.Duration {
	at := now + g.gap()
	if g.IntN(6) == 0 && len(g.dues) > 0 {
		at = g.near(pick(g, g.dues...))
	}
	return max(now, at)
}

func (g *generator) script(c timeout.Config, start time.Duration) *script {
	sc := &script{id: g.scripts, config: c, do: g.IntN(2) == 0, hooks: g.IntN(2) == 0, attentive: g.IntN(4) > 0, result: result(g.IntN(int(results)))}
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

type modelError struct{ text string }

func (e *modelError) Error() string { return e.text }

// A driver takes a schedule through the real thing.
type driver struct {
	base time.Time

	fns      sync.WaitGroup
	mu       sync.Mutex
	ctxs     map[int]context.Context
	releases map[int]func()
	seen     []*seen
}

// What is seen of one execution.
type seen struct {
	start    time.Duration
	called   bool
	deadline time.Duration // that the function's context shows, or never

	doneAt   time.Duration // when an attentive function saw its context done, or -1
	cause    error         // of the context, then
	returned error         // what the function returned, if it did
	finished bool

	over  bool // Run returned
	at    time.Duration
	value int
	err   error

	count uint64 // of the monitor, after that
	last  time.Duration

	calls hookCalls
	near  []time.Duration // instants of NearIdle

	ctxCause   error // in the end
	finalCount uint64
}

// stop is when the execution was stopped, and why, if it was.
func (o *seen) stop() (time.Duration, timeout.Kind, bool) {
	if e, ok := o.err.(*timeout.Error); ok && o.called {
		return o.start + e.Elapsed, e.Kind, e != o.returned
	}
	return 0, 0, false
}

func drive(s *schedule) *driver {
	d := &driver{base: time.Now(), ctxs: map[int]context.Context{}, releases: map[int]func(){}}
	for range s.scripts {
		d.seen = append(d.seen, &seen{doneAt: -1, deadline: never})
	}
	ctx := context.Background()
	if s.caller.deadline != never {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, d.base.Add(s.caller.deadline))
		defer cancel()
	}
	if s.caller.cancel != never {
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		if s.caller.cancel == 0 {
			cancel(errModelCaller)
		} else {
			defer time.AfterFunc(s.caller.cancel, func() { cancel(errModelCaller) }).Stop()
		}
	}
	d.run(ctx, s.root)
	d.fns.Wait() // for those that were abandoned
	for id, ctx := range d.ctxs {
		m := heartbeat.FromContext(ctx)
		m.Beat()
		d.seen[id].ctxCause, d.seen[id].finalCount = context.Cause(ctx), m.Count()
	}
	return d
}

type hookCalls struct{ started, finished, abandoned, returned int }

func (d *driver) now() time.Duration { return time.Since(d.base) }

func (d *driver) run(ctx context.Context, sc *script) {
	o := d.seen[sc.id]
	o.start = d.now()
	fn := func(ctx context.Context) (int, error) {
		d.fns.Add(1)
		defer d.fns.Done()
		d.mu.Lock()
		d.ctxs[sc.id] = ctx
		d.mu.Unlock()
		o.called = true
		if t, ok := ctx.Deadline(); ok {
			o.deadline = t.Sub(d.base)
		}
		d.play(ctx, sc, o)
		err := d.result(ctx, sc)
		d.mu.Lock()
		o.finished, o.returned = true, err
		d.mu.Unlock()
		return 100 + sc.id, err
	}
	var v int
	var err error
	opts := []timeout.Option{timeout.WithName(fmt.Sprint("tool", sc.id)), sc.config}
	if sc.hooks {
		opts = append(opts, timeout.WithHooks(d.hooks(o)))
	}
	if sc.do {
		v, err = timeout.Do(ctx, fn, opts...)
	} else {
		err = timeout.Run(ctx, func(ctx context.Context) error { _, err := fn(ctx); return err }, opts...)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	o.over, o.at, o.value, o.err = true, d.now(), v, err
	if m := heartbeat.FromContext(d.context(sc.id)); m != nil {
		o.count, o.last = m.Count(), m.Last().Sub(d.base)
	}
}

func (d *driver) hooks(o *seen) timeout.Hooks {
	count := func(n *int) func(context.Context, timeout.Snapshot) {
		return func(context.Context, timeout.Snapshot) {
			d.mu.Lock()
			defer d.mu.Unlock()
			*n++
		}
	}
	return timeout.Hooks{
		Started: count(&o.calls.started), Finished: count(&o.calls.finished),
		Abandoned: count(&o.calls.abandoned), Returned: count(&o.calls.returned),
		NearIdle: func(context.Context, timeout.Snapshot) {
			d.mu.Lock()
			defer d.mu.Unlock()
			o.near = append(o.near, d.now())
		},
	}
}

func (d *driver) context(id int) context.Context {
	if ctx := d.ctxs[id]; ctx != nil {
		return ctx
	}
	return context.Background()
}

// play is the function's life up to its return.
func (d *driver) play(ctx context.Context, sc *script, o *seen) {
	for _, st := range sc.steps {
		if !d.wait(ctx, sc, o, st.at) {
			return
		}
		d.do(ctx, st)
	}
	d.wait(ctx, sc, o, sc.end)
}

// wait waits until an instant. It reports false if an attentive function has seen
// its context done, and has taken the late steps.
func (d *driver) wait(ctx context.Context, sc *script, o *seen, until time.Duration) bool {
	if !sc.attentive {
		time.Sleep(until - d.now())
		return true
	}
	timer := time.NewTimer(max(0, until-d.now()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	}
	o.doneAt, o.cause = d.now(), context.Cause(ctx)
	time.Sleep(sc.linger)
	for _, st := range sc.late {
		d.do(ctx, st)
	}
	return false
}

func (d *driver) do(ctx context.Context, st step) {
	d.mu.Lock()
	of, release := d.context(st.of), d.releases[st.hold]
	d.mu.Unlock()
	switch st.op {
	case opBeat:
		heartbeat.Beat(of)
	case opDetail:
		heartbeat.BeatWith(of, st.at)
	case opMonitor:
		heartbeat.FromContext(of).Beat()
	case opBurst:
		for range st.n {
			heartbeat.Beat(of)
			if st.every > 0 {
				time.Sleep(st.every)
			}
		}
	case opHold:
		release := heartbeat.Hold(of)
		d.mu.Lock()
		d.releases[st.hold] = release
		d.mu.Unlock()
	case opRelease:
		if release != nil {
			release()
		}
	case opRun:
		d.run(ctx, st.sub)
	}
}

func (d *driver) result(ctx context.Context, sc *script) error {
	switch sc.result {
	case resultOwn:
		return errModelOwn
	case resultCtx:
		return ctx.Err()
	case resultMix:
		return errors.Join(errModelOwn, context.Cause(ctx))
	case resultSub:
		for i := len(sc.steps) - 1; i >= 0; i-- {
			if sub := sc.steps[i].sub; sub != nil {
				d.mu.Lock()
				defer d.mu.Unlock()
				return d.seen[sub.id].err
			}
		}
	}
	return nil
}
