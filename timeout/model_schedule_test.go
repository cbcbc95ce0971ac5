package timeout_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

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
	// observe says that limits are only observed.
	observe bool
	steps   []step
	end     time.Duration // when it returns, if it is not busy then
	result  result

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
	return [...]string{"nil", "errModelOwn", "ctx.Err()", "errModelOwn with the cause", "what the last nested one returned"}[r]
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
	fmt.Fprintf(b, "%sexecution %d: total %v, idle %v, grace %v", indent, sc.id, sc.config.Total, sc.config.Idle, sc.config.Grace)
	if sc.observe {
		b.WriteString(", only observed")
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
		if sc.observe {
			add(func(c *schedule) { c.scripts[sc.id].observe = false })
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
