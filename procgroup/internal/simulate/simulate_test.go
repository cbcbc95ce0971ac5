//go:build unix

package simulate_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
)

var simOnce = flag.Bool("simulate.first", false, "end with the first run that fails, and do not make it smaller")

// simRuns are as many as take a few seconds.
func simRuns() int {
	if raceEnabled {
		return 2000
	}
	return 10_000
}

// Guarantees 1, 3, 4, 6 and 9, and SPEC 3.5, 6.4, 6.9, 6.11, 6.14, 6.20, 6.24: random commands on a simulated machine,
// each judged by the rules of the oracle.
func TestSimulation(t *testing.T) {
	runs, seed := harness.Runs(simRuns()), harness.FirstSeed()
	began := time.Now()
	var next, failed atomic.Uint64
	defer shown.log(t)
	next.Store(seed)
	workers := runtime.GOMAXPROCS(0)
	if workers > 4 {
		workers = 4
	}
	t.Run("runs", func(t *testing.T) {
		for w := range workers {
			t.Run(fmt.Sprint(w), func(t *testing.T) {
				t.Parallel()
				for {
					n := next.Add(1) - 1
					if harness.Length() > 0 && time.Since(began) > harness.Length() || harness.Length() == 0 && n >= seed+uint64(runs) || failed.Load() > 2 || *simOnce && failed.Load() > 0 {
						return
					}
					r := generate(rand.New(rand.NewPCG(n, 0)))
					if wrong := r.inBubble(t, n); len(wrong) > 0 && failed.Add(1) <= 3 {
						small, why := r, wrong
						if !*simOnce {
							small, why = r.shrink(t, n, wrong)
						}
						t.Errorf("seed %d:\n%s\nshrunk to\n%v\nwhich says\n%s\nKeep it in testdata/simulate.", n, strings.Join(wrong, "\n"), small, strings.Join(why, "\n"))
					}
				}
			})
		}
	})
	t.Logf("%d runs from seed %d in %v", next.Load()-seed, seed, time.Since(began).Round(time.Millisecond))
}

// Runs that failed once.
func TestSimulatedCases(t *testing.T) {
	files, err := filepath.Glob("testdata/simulate/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".json"), func(t *testing.T) {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			var r simRun
			if err := json.Unmarshal(data, &r); err != nil {
				t.Fatal(err)
			}
			for range 5 { // the scheduler decides who goes first at one instant
				if wrong := r.inBubble(t, 0); len(wrong) > 0 {
					t.Fatalf("%v\n%s", r, strings.Join(wrong, "\n"))
				}
			}
		})
	}
}

// shown counts what runs have shown, since a rule that is never asked says nothing.
var shown tally

type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) count(s *seen) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = make(map[string]int)
	}
	what := "not started"
	if s.res != nil {
		what = s.res.Reason.Error()
	}
	c.n[what]++
	if len(s.told) > 0 {
		c.n["told of a wait"]++
	}
}

func (c *tally) log(t *testing.T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.Log(c.n)
}

// inBubble makes the run and judges it.
func (r simRun) inBubble(t *testing.T, seed uint64) (wrong []string) {
	// Time stands still in a bubble while somebody waits for a mutex, so what hangs is found by real time.
	hung := time.AfterFunc(time.Minute, func() {
		buf := make([]byte, 1<<20)
		os.Stderr.Write(buf[:runtime.Stack(buf, true)])
		panic(fmt.Sprintf("seed %d hangs: is code of the caller's called with a lock held?\n%v", seed, r))
	})
	defer hung.Stop()
	defer func() {
		if v := recover(); v != nil { // synctest's way to say that something is left
			panic(fmt.Sprintf("seed %d: %v\n%v", seed, v, r))
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		s := r.run()
		synctest.Wait()
		wrong = s.judge()
		shown.count(s)
	})
	return wrong
}

// shrink looks for a smaller run that fails, too.
func (r simRun) shrink(t *testing.T, seed uint64, wrong []string) (simRun, []string) {
	for tries := 0; tries < 2000; {
		smaller := false
		for _, c := range r.smaller() {
			if tries++; tries >= 2000 {
				break
			}
			if w := c.inBubble(t, seed); len(w) > 0 {
				r, wrong, smaller = c, w, true
				break
			}
		}
		if !smaller {
			break
		}
	}
	return r, wrong
}

// smaller returns runs with one thing less.
func (r simRun) smaller() (all []simRun) {
	for _, s := range smallerScripts(r.Script) {
		c := r
		c.Script = s
		all = append(all, c)
	}
	for i := range r.Events {
		c := r
		c.Events = slices.Delete(slices.Clone(r.Events), i, i+1)
		all = append(all, c)
	}
	simpler := func(change func(*simRun)) {
		c := r
		if change(&c); c.String() != r.String() {
			all = append(all, c)
		}
	}
	for _, u := range []func(*simRun) *user{
		func(c *simRun) *user { return &c.Stdin }, func(c *simRun) *user { return &c.Stdout }, func(c *simRun) *user { return &c.Stderr }, func(c *simRun) *user { return &c.Output },
	} {
		simpler(func(c *simRun) { *u(c) = user{How: absent} })
		simpler(func(c *simRun) {
			if u(c).How != absent { // or one of the two would follow the other for ever
				*u(c) = user{}
			}
		})
	}
	for i := range reflect.TypeOf(r).NumField() {
		switch reflect.TypeOf(r).Field(i).Name {
		case "Script", "Stdin", "Stdout", "Stderr", "Output":
		default:
			simpler(func(c *simRun) { reflect.ValueOf(c).Elem().Field(i).SetZero() })
		}
	}
	simpler(func(c *simRun) { c.Outer.Lead = 0 })
	simpler(func(c *simRun) { c.Outer.Reserve = 0 })
	return all
}

func smallerScripts(s Script) (all []Script) {
	for i := range s {
		all = append(all, slices.Delete(slices.Clone(s), i, i+1))
	}
	for i, step := range s {
		for _, inner := range smallerScripts(step.Script) {
			c := slices.Clone(s)
			c[i].Script = inner
			all = append(all, c)
		}
		if step.N > 1 && step.Do == Write {
			c := slices.Clone(s)
			c[i].N = 1
			all = append(all, c)
		}
	}
	return all
}

// generate makes a run of a few features, in which much falls on the same instant.
func generate(rng *rand.Rand) simRun {
	g := generator{Rand: rng, unit: []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second}[rng.IntN(4)]}
	var r simRun
	if g.one(2) {
		r.Idle = g.time()
	}
	if g.one(2) {
		r.Total = g.time() + g.time()
	}
	if g.one(2) {
		r.Kill = g.time() - 1
	}
	if g.one(4) {
		r.Abort = g.time()
	}
	if g.one(6) {
		if r.Outer.Idle = g.time(); g.one(2) {
			r.Outer.Idle, r.Outer.Total = 0, g.time()+g.time()
			if g.one(2) {
				r.Outer.Reserve = g.time()
			}
		}
		if g.one(3) {
			r.Outer.Lead = g.time()
		}
	} else if g.one(6) && r.Total > 0 {
		r.Reserve = g.time()
	}
	if g.one(4) {
		r.MaxOutput = g.pick(1, 100, 1000, 100_000)
	}
	if g.one(10) {
		r.OutputLimit = int64(g.pick(1, 100, 70_000, 300_000))
	}
	r.OnePipe, r.Orphans, r.Escapes, r.Stacks, r.Work = g.one(8), g.one(8), g.one(8), g.one(8), g.one(12)
	r.Stdin, r.Stdout, r.Stderr, r.Output = user{How: absent}, g.user(true), g.user(true), g.user(false)
	if g.one(4) {
		r.Stdin = g.user(true)
		r.Chunk = g.pick(0, 1, 100)
		r.StopOnInput, r.Told = g.one(3), g.one(2)
		if r.Stdin.How == absent || g.one(2) {
			r.Stdin = user{How: block, N: g.IntN(3)}
		}
		if r.Told && g.one(6) {
			r.Input = g.misbehaviour(false)
		}
	}
	if g.one(8) {
		r.Hook = g.misbehaviour(false)
	}
	if g.one(8) {
		r.Logger = g.misbehaviour(false)
	}
	if g.one(8) {
		r.Victim, r.Late = []string{"1", "2", "wait", "kill"}[g.IntN(4)], time.Duration(1+g.IntN(8))*time.Millisecond
	}
	if g.one(8) {
		for _, f := range []*time.Duration{&r.Faults.Snapshot, &r.Faults.Others, &r.Faults.Stacks} {
			if g.one(3) {
				*f = g.time()
			}
		}
		r.Faults.Alive = min(g.time(), 10*time.Millisecond)
	}
	// Only these looks may never return.
	if r.Work && g.one(3) {
		r.Faults.Meter = []time.Duration{Never, g.time()}[g.IntN(2)]
	}
	if r.Stdin.How != absent && g.one(6) {
		r.Faults.Input = []time.Duration{Never, g.time()}[g.IntN(2)]
	}
	for range g.pick(0, 0, 0, 1, 2) {
		e := event{At: g.time(), Do: []string{"cancel", "signal", "wait", "hold", "holdOuter"}[g.IntN(5)]}
		if e.Do == "hold" || e.Do == "holdOuter" {
			e.D = g.time() + g.time()
		}
		if e.Do == "signal" {
			e.S = g.signal()
			if e.S == closingSignal {
				e.S = syscall.SIGUSR1
			}
		}
		r.Events = append(r.Events, e)
	}
	r.OwnContext = g.one(8)
	if r.Total == 0 && r.Idle == 0 && (!r.Outer.is() || g.one(2)) {
		r.Total = time.Minute
	}
	if r.Notify = !r.Work && g.one(6); r.Notify {
		if g.notify = true; g.one(2) {
			r.Idle, r.OutputLimit = 2*g.time(), 0
		}
	}
	r.Script = g.script(3)
	if r.Notify && g.one(2) { // the last that is said, in silence
		r.Script = append(r.Script, Step{Do: Sleep, D: g.time()}, g.say(), Step{Do: Sleep, D: 10 * g.time()})
	}
	if r.Stacks && g.one(2) { // somebody who writes them, and then does not end
		r.Script = append(Script{{Do: Trap, Signal: syscall.SIGQUIT, Script: Script{{Do: Sleep, D: g.time()}}}, {Do: Ignore, Signal: syscall.SIGTERM}}, r.Script...)
	}
	switch g.IntN(16) {
	case 0, 1:
		g.ask(&r)
	case 2:
		g.toil(&r)
	}
	return r
}

// toil makes the run one that works.
func (g generator) toil(r *simRun) {
	g.unit = time.Duration(g.pick(10, 100, 1000)) * time.Millisecond
	r.Work, r.Idle, r.Total, r.Outer, r.Events, r.Hook, r.Logger = true, 3*g.time(), 0, outer{}, nil, user{}, user{}
	if g.one(2) {
		r.CPURate = 0.5
	}
	r.Script = nil
	for range 1 + g.IntN(4) {
		step := Step{Do: Work, D: 2 * g.time()}
		switch g.IntN(4) {
		case 0:
			step = Step{Do: Sleep, D: 3 * g.time()}
		case 1:
			step = Step{Do: Write, FD: 1, N: 1}
		case 2:
			step = Step{Do: Fork, Script: Script{step}}
		}
		r.Script = append(r.Script, step)
	}
	r.Script = append(r.Script, Step{Do: Sleep, D: 10 * g.time()})
}

// ask makes the run one that waits for input.
func (g generator) ask(r *simRun) {
	g.unit = time.Duration(g.pick(100, 150, 300, 1000)) * time.Millisecond
	r.Total, r.Escapes, r.MaxOutput, r.OutputLimit, r.Outer = time.Minute, false, 0, 0, outer{}
	if r.Idle > 0 {
		r.Idle = 5 * g.time()
	}
	r.StopOnInput, r.Told = g.one(2), g.one(2)
	r.Stdin = []user{{How: block, N: g.IntN(3)}, {How: slow, D: g.time()}, {How: block, N: g.IntN(3)}, g.misbehaviour(true)}[g.IntN(4)]
	r.Chunk = g.pick(1, 100)
	if g.one(2) {
		r.Faults.Input = g.time() / 5
	}
	r.Script = g.question(2)
}

func (g generator) question(depth int) (s Script) {
	for range 1 + g.IntN(4) {
		step := Step{Do: Read, N: g.pick(1, 100)}
		switch n := g.IntN(12); {
		case n < 3:
			step = Step{Do: Write, FD: 1 + g.IntN(2), N: g.pick(1, 10, 61, 70)}
		case n < 5:
			step = Step{Do: Sleep, D: g.time()}
		case n == 5:
			step = Step{Do: Work, D: g.time()}
		case n < 8 && depth > 0:
			s = append(s, Step{Do: Fork, Script: g.question(depth - 1)})
			step = Step{Do: Await}
		case n == 8 && depth > 0:
			step = g.script(depth - 1)[0]
		case n == 9:
			step = Step{Do: Stop, Signal: []syscall.Signal{syscall.SIGTTIN, syscall.SIGTTOU, 0}[g.IntN(3)]}
		}
		s = append(s, step)
	}
	return s
}

type generator struct {
	*rand.Rand
	unit   time.Duration
	notify bool // processes say something on a socket
}

func (g generator) one(in int) bool    { return g.IntN(in) == 0 }
func (g generator) pick(of ...int) int { return of[g.IntN(len(of))] }
func (g generator) signal() syscall.Signal {
	return []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGSTOP, syscall.SIGCONT, syscall.SIGQUIT, syscall.SIGPIPE, closingSignal}[g.IntN(9)]
}

// time returns a few units, or a nanosecond more or less.
func (g generator) time() time.Duration {
	d := time.Duration(1+g.IntN(5)) * g.unit
	switch g.IntN(8) {
	case 0:
		d++
	case 1:
		d--
	case 2:
		d /= 2
	}
	return d
}

func (g generator) user(writer bool) user {
	switch g.IntN(8) {
	case 0, 1, 2:
		return user{}
	case 3:
		return g.misbehaviour(writer)
	}
	return user{How: absent}
}

func (g generator) misbehaviour(writer bool) user {
	hows := []string{slow, block, panics, goexit, callback}
	if writer {
		hows = append(hows, fail)
	}
	return user{How: hows[g.IntN(len(hows))], D: g.time(), N: g.IntN(3)}
}

func (g generator) say() Step {
	return Step{Do: Say, N: g.pick(1, 1, 1, 60, 101, 250), Text: []string{
		"WATCHDOG=1", "WATCHDOG=1", "STATUS=one\nWATCHDOG=1", "STATUS=two", "READY=1", "STOPPING=1", "X_UNKNOWN=1", strings.Repeat("x", 5000),
		fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", g.time().Microseconds()), fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", 9*g.time().Microseconds()), "EXTEND_TIMEOUT_USEC=0",
	}[g.IntN(11)]}
}

func (g generator) script(depth int) (s Script) {
	for range 1 + g.IntN(5) {
		step := Step{Do: Sleep, D: g.time()}
		if g.notify && g.one(2) {
			s = append(s, g.say())
		}
		switch n := g.IntN(20); {
		case n < 6:
			step = Step{Do: Write, FD: 1 + g.IntN(2), N: g.pick(1, 10, 100, 5000, 70_000, 200_000)}
		case n == 11:
			step = Step{Do: Read, N: g.pick(1, 100, 50_000)}
		case n < 11:
		case n < 14 && depth > 0:
			step = Step{Do: Fork, Script: g.script(depth - 1)}
		case n == 14 && depth > 0:
			step = Step{Do: Daemon, Script: g.script(depth - 1)}
		case n == 15 && depth > 0:
			step = Step{Do: Trap, Signal: g.signal(), Script: g.script(depth - 1)}
		case n == 16:
			step = Step{Do: Ignore, Signal: g.signal()}
		case n == 17:
			step = []Step{{Do: Close, FD: 1 + g.IntN(2)}, {Do: Stop}, {Do: Stop, Signal: syscall.SIGTTIN}, {Do: Await}, {Do: Work, D: g.time()}, {Do: Work, D: 10 * g.time()}}[g.IntN(6)]
		case n == 18:
			step = Step{Do: Unkillable, D: g.time()}
		case n == 19:
			step = []Step{{Do: Exit, N: g.pick(0, 1, 3)}, {Do: Die, Signal: syscall.SIGKILL}}[g.IntN(2)]
		}
		s = append(s, step)
	}
	return s
}
