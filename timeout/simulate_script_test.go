package timeout_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// A schedule is everything that one simulated run does: the caller's context, the watchers, and the script of the
// function, nested executions included. All instants are durations since the outermost execution started.
type schedule struct {
	caller   caller
	watchers []watcher
	root     *script
	scripts  []*script // by id
}

// A caller is the context that the outermost execution is given.
type caller struct {
	cancel   time.Duration // never, or when it is cancelled, with errModelCaller as the cause
	deadline time.Duration // never, or its deadline, with errBudget as the cause; 0 or less is over from the start

	inherited bool // the deadline is that of the environment
}

const never = time.Duration(math.MaxInt64)

// A watcher is registered at one instant and stopped at another.
type watcher struct {
	from, to time.Duration
	manners  manners
}

// An act is what a hook, or a log handler, does beside what it is there for.
type act struct {
	how  int
	long time.Duration // of a slow one
}

const (
	quick = iota
	slow
	panics
	goexits
	beats
	closes
	aborts
	looks // calls everything that only asks, and runs something
	hows
)

func (a act) String() string {
	if a.how == slow {
		return fmt.Sprint("takes ", a.long)
	}
	return [...]string{"quick", "slow", "panics", "goexits", "beats", "closes", "aborts", "looks"}[a.how]
}

// manners are the acts of all hooks, in the order of the fields of timeout.Hooks; and enrich is what Context returns.
type manners struct {
	acts   [hookCount]act
	enrich int
}

const (
	hookContext = iota
	hookStarted
	hookNearIdle
	hookStalled
	hookClosing
	hookExceeded
	hookAbandoned
	hookFinished
	hookReturned
	hookCount
)

var hookNames = [hookCount]string{"Context", "Started", "NearIdle", "Stalled", "Closing", "Exceeded", "Abandoned", "Finished", "Returned"}

func (m manners) String() string {
	var all []string
	for i, a := range m.acts {
		if a.how != quick {
			all = append(all, fmt.Sprint(hookNames[i], " ", a))
		}
	}
	return fmt.Sprintf("%v, enriches %d", all, m.enrich)
}

// A script is one execution.
type script struct {
	id       int
	config   timeout.Config
	need     time.Duration
	between  time.Duration // 0, or the deadline of a plain context between the enclosing execution and this one, with errBudget
	do       bool          // Do instead of Run
	observe  bool          // limits are only observed
	recovers bool
	clocked  bool // on a clock of its own, which shows the same time
	hooks    *manners
	logger   *act

	steps  []step
	end    time.Duration // when it returns, if it is not busy then
	result result

	// An attentive function also waits for its context. When that is done it lingers,
	// deaf, takes the late steps, whose instants do not count, and returns.
	attentive bool
	linger    time.Duration
	late      []step
}

// A result is what a function returns, or does instead.
type result int

const (
	resultNil   result = iota
	resultOwn          // an error of its own
	resultCtx          // ctx.Err()
	resultMix          // its own, together with the cause of the context
	resultSub          // what the last nested execution gave
	resultPanic        // it panics
	resultExit         // it calls runtime.Goexit
	results
)

func (r result) String() string {
	return [...]string{"nil", "errModelOwn", "ctx.Err()", "errModelOwn with the cause", "what the last nested one returned", "by a panic", "by Goexit"}[r]
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
	opAbort
	opClose
	opLook  // Snapshot and Remaining
	opProbe // registers a probe, or closes it
)

func (o op) String() string {
	return [...]string{"Beat", "BeatWith", "Monitor.Beat", "burst", "Hold", "release", "Run", "Abort", "BeginClosing", "Snapshot", "probe"}[o]
}

// A step is done at its instant, or as soon as the function gets there.
type step struct {
	at    time.Duration
	op    op
	of    int           // the id of the execution whose context is used; it may be over
	n     int           // burst: how many beats
	every time.Duration // burst: time between two; probe: how long a look takes
	until time.Duration // probe: until when a look finds work
	hold  int           // Hold, release: which
	sub   *script       // Run
}

func (s *schedule) String() string {
	var b strings.Builder
	if s.caller.cancel != never {
		fmt.Fprintf(&b, "caller cancels at %v\n", s.caller.cancel)
	}
	if s.caller.deadline != never {
		fmt.Fprintf(&b, "caller has a deadline at %v, from the environment: %v\n", s.caller.deadline, s.caller.inherited)
	}
	for _, w := range s.watchers {
		fmt.Fprintf(&b, "watched from %v to %v: %v\n", w.from, w.to, w.manners)
	}
	s.root.print(&b, "")
	return b.String()
}

func (sc *script) print(b *strings.Builder, indent string) {
	fmt.Fprintf(b, "%sexecution %d: total %v, idle %v, grace %v, reserve %v", indent, sc.id, sc.config.Total, sc.config.Idle, sc.config.Grace, sc.config.Reserve)
	for _, x := range []struct {
		what string
		is   bool
	}{{"Do", sc.do}, {"only observed", sc.observe}, {"recovers", sc.recovers}, {"own clock", sc.clocked}} { // always in this order: simpler compares texts
		if x.is {
			fmt.Fprint(b, ", ", x.what)
		}
	}
	if sc.need != 0 {
		fmt.Fprintf(b, ", needs %v", sc.need)
	}
	if sc.between != 0 {
		fmt.Fprintf(b, ", under a deadline at %v", sc.between)
	}
	if sc.hooks != nil {
		fmt.Fprintf(b, ", hooks %v", *sc.hooks)
	}
	if sc.logger != nil {
		fmt.Fprintf(b, ", logger %v", *sc.logger)
	}
	b.WriteByte('\n')
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
	case opProbe:
		return fmt.Sprintf("%v of %v, finds work until %v", st.op, st.every, st.until)
	case opRun:
		return "Run"
	default:
		return fmt.Sprintf("%v of %d", st.op, st.of)
	}
}

// clone returns a deep copy, for shrinking.
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

// simpler returns schedules that are one notch simpler than s.
func (s *schedule) simpler() []*schedule {
	var out []*schedule
	add := func(change func(c *schedule)) {
		c := &schedule{caller: s.caller, watchers: slices.Clone(s.watchers), root: s.root.clone()}
		c.index(len(s.scripts))
		change(c)
		if c.index(len(s.scripts)); c.String() != s.String() {
			out = append(out, c)
		}
	}
	add(func(c *schedule) { c.caller = caller{cancel: never, deadline: never} })
	for i := range s.watchers {
		add(func(c *schedule) { c.watchers = slices.Delete(c.watchers, i, i+1) })
		add(func(c *schedule) { c.watchers[i].manners = manners{} })
	}
	s.root.walk(func(sc *script) {
		change := func(f func(*script)) { add(func(c *schedule) { f(c.scripts[sc.id]) }) }
		for i, st := range sc.steps {
			change(func(c *script) { c.steps = slices.Delete(c.steps, i, i+1) })
			if st.n > 130 {
				change(func(c *script) { c.steps[i].n = 130 })
			}
		}
		for _, f := range []func(*script){
			func(c *script) { c.late = nil },
			func(c *script) { c.observe = false },
			func(c *script) { c.clocked = false },
			func(c *script) { c.hooks = nil },
			func(c *script) { c.logger = nil },
			func(c *script) { c.linger = 0 },
			func(c *script) { c.need = 0 },
			func(c *script) { c.do = false },
			func(c *script) { c.recovers = false },
			func(c *script) { c.result = resultNil },
			func(c *script) { c.config.Idle = 0 },
			func(c *script) { c.config.Total = 0 },
			func(c *script) { c.config.Grace = 0 },
			func(c *script) { c.config.Reserve = 0 },
		} {
			change(f)
		}
		if sc.hooks != nil {
			change(func(c *script) { c.hooks = &manners{} })
			for i := range sc.hooks.acts {
				change(func(c *script) { h := *c.hooks; h.acts[i] = act{}; c.hooks = &h })
			}
		}
	})
	return out
}
