package timeout_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

var (
	modelSeed = flag.Uint64("model.seed", 0, "seed of the first schedule of TestModel; 0 is a random one")
	modelRuns = flag.Int("model.runs", 1000, "number of schedules of TestModel")
)

// TestModel runs random schedules against the engine and against a model of it that
// was written from the documentation alone, and compares what can be seen.
func TestModel(t *testing.T) {
	seed := *modelSeed
	if seed == 0 {
		seed = rand.Uint64() >> 16 // short enough to be typed
	}
	for i := range *modelRuns {
		s := generate(seed + uint64(i))
		diff := check(t, s)
		if diff == "" {
			continue
		}
		for tries := 0; tries < 300; {
			smaller := false
			for _, c := range s.simpler() {
				tries++
				if d := check(t, c); d != "" {
					s, diff, smaller = c, d, true
					break
				}
			}
			if !smaller {
				break
			}
		}
		t.Fatalf("go test ./timeout -run 'TestModel$' -model.seed=%d -model.runs=1 # and -count, if it depends on the scheduler\n%s\n%v", seed+uint64(i), diff, s)
	}
}

// check runs a schedule and says how the engine differs from the model. Where the
// documentation leaves more than one result open, it suffices that one agrees. What
// could be anything, or has too many possible results to try them all, passes.
func check(t *testing.T, s *schedule) string {
	t.Helper()
	defer func() {
		if r := recover(); r != nil { // synctest's way to say that something is left
			t.Logf("%v", s)
			panic(r)
		}
	}()
	defer time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("no end:\n%v", s)) }).Stop()
	before := timeout.AbandonedCount()
	var d *driver
	synctest.Test(t, func(*testing.T) { d = drive(s) })
	if n := timeout.AbandonedCount() - before; n != 0 {
		return fmt.Sprintf("Abandoned() is %d too high after the last function has returned", n)
	}
	dates := d.dates()
	first, furthest, open := "", time.Duration(0), false
	var choices []choice
	for tries := 0; ; tries++ {
		m := &model{s: s, choices: choices, dates: dates, seen: d.seen, differs: d.compare}
		m.run()
		if m.diff == "" {
			return ""
		}
		open = open || m.open
		if m.now > furthest || first == "" || m.now == furthest && strings.Count(m.diff, "\n") < strings.Count(first, "\n") {
			first, furthest = m.diff, m.now
		}
		choices = m.choices
		for len(choices) > 0 && choices[len(choices)-1].taken+1 == choices[len(choices)-1].of {
			choices = choices[:len(choices)-1]
		}
		if len(choices) == 0 {
			break
		}
		if tries == 5000 {
			return ""
		}
		choices[len(choices)-1].taken++
	}
	if open {
		return ""
	}
	return first
}

// TestModelMock takes simple schedules through the engine on a mock clock, where
// every beat is exact. The mock has no bubble around it, so after each limit the test
// waits in real time; that is why there are few schedules, and no abandonment.
func TestModelMock(t *testing.T) {
	seed := *modelSeed
	if seed == 0 {
		seed = rand.Uint64() >> 16
	}
	for i := range uint64(40) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed+i, 1)), caller: caller{never, never}}
		c := g.config()
		c.Grace = never
		s := &schedule{caller: g.caller, root: g.script(c, 0)}
		s.root.steps = slices.DeleteFunc(s.root.steps, func(st step) bool { return st.of != 0 || st.op == opBurst || st.op == opRun })
		s.root.attentive = false
		if diff := mock(s.index(g.scripts)); diff != "" {
			t.Fatalf("go test ./timeout -run TestModelMock -model.seed=%d\n%s\n%v", seed+i, diff, s)
		}
	}
}

// mock returns the first difference. It is a model of its own: with one execution, no
// caller and no races, a few lines say what has to happen.
func mock(s *schedule) string {
	sc := s.root
	clk := clock.NewMock()
	begun, end := make(chan context.Context), make(chan struct{})
	over := make(chan error)
	go func() {
		over <- timeout.Run(context.Background(), func(ctx context.Context) error {
			begun <- ctx
			<-end
			return errModelOwn
		}, sc.config, timeout.WithClock(clk))
	}()
	ctx := <-begun

	limits, _ := sc.config.Normalize()
	total, idle := limits.Total, limits.Idle
	if total == 0 {
		total = never
	}
	if idle == 0 {
		idle = never
	}
	var now, last time.Duration
	var beats uint64
	held, releases := 0, map[int]func(){}
	want := timeout.Kind(0)
	for _, st := range append(sc.steps[:len(sc.steps):len(sc.steps)], step{at: sc.end, op: -1}) {
		due := total
		if held == 0 {
			due = min(due, later(last, idle))
		}
		at := max(now, min(st.at, due))
		clk.Add(at - now)
		now = at
		if due == now {
			if want = timeout.KindIdle; now == total {
				want = timeout.KindTotal
			}
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Second):
				return fmt.Sprintf("no limit fired at %v", now)
			}
			break
		}
		if err := ctx.Err(); err != nil {
			return fmt.Sprintf("at %v: %v", now, context.Cause(ctx))
		}
		switch st.op {
		case opBeat, opMonitor:
			heartbeat.Beat(ctx)
			beats, last = beats+1, now
		case opDetail:
			heartbeat.BeatWith(ctx, st)
			beats, last = beats+1, now
		case opHold:
			releases[st.hold] = heartbeat.Hold(ctx)
			held, last = held+1, now
		case opRelease:
			if release := releases[st.hold]; release != nil {
				release()
				release()
				delete(releases, st.hold)
				held, last = held-1, now
			}
		}
	}
	close(end)
	err := <-over
	if want == 0 {
		if err != errModelOwn {
			return fmt.Sprintf("error %v, want the function's own", err)
		}
		return ""
	}
	e, ok := err.(*timeout.Error)
	if !ok {
		return fmt.Sprintf("error %v, want %v", err, want)
	}
	limit := limits.Idle
	if want == timeout.KindTotal {
		limit = limits.Total
	}
	got := timeout.Error{Kind: e.Kind, Limit: e.Limit, Elapsed: e.Elapsed, SinceBeat: e.SinceBeat, Beats: e.Beats, Err: e.Err}
	if exp := (timeout.Error{Kind: want, Limit: limit, Elapsed: now, SinceBeat: now - last, Beats: beats, Err: errModelOwn}); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", exp) {
		return fmt.Sprintf("error %+v\n want %+v", got, exp)
	}
	return ""
}
