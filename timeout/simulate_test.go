package timeout_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var (
	simRuns = flag.Int("simulate.runs", 3000, "how many random runs TestSimulation makes")
	simSeed = flag.Uint64("simulate.seed", 1, "the seed of its first run; 0 takes one from the clock")
	simFor  = flag.Duration("simulate.for", 0, "go on for that long, whatever the number of runs")
)

// Guarantees 1 to 9 and 11 to 13, and the rules of SPEC 3 and 4 about time and order: random executions, each judged by rules.
func TestSimulation(t *testing.T) {
	seed := *simSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano()) >> 16 // short enough to be typed
	}
	began, n := time.Now(), 0
	for ; *simFor == 0 && n < *simRuns || time.Since(began) < *simFor; n++ {
		s := generate(seed + uint64(n))
		wrong := judge(t, seed+uint64(n), s)
		if len(wrong) == 0 {
			continue
		}
		first := strings.Join(wrong, "\n")
		for tries := 0; tries < 1000; {
			smaller := false
			for _, c := range s.simpler() {
				tries++
				if w := judge(t, seed+uint64(n), c); len(w) > 0 {
					s, wrong, smaller = c, w, true
					break
				}
			}
			if !smaller {
				break
			}
		}
		t.Fatalf("seed %d:\n%s\nshrunk to\n%vwhich says\n%s\ngo test ./timeout -run 'TestSimulation$' -simulate.seed=%[1]d -simulate.runs=1 # and -count, if it depends on the scheduler",
			seed+uint64(n), first, s, strings.Join(wrong, "\n"))
	}
	t.Logf("%d runs from seed %d in %v", n, seed, time.Since(began).Round(time.Millisecond))
}

// judge performs a schedule and returns what was wrong.
func judge(t *testing.T, seed uint64, s *schedule) (wrong []string) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil { // synctest's way to say that something is left
			t.Logf("%v", s)
			panic(r)
		}
	}()
	// Time stands still in a bubble while somebody waits for a mutex, so what hangs is found by real time.
	defer time.AfterFunc(time.Minute, func() {
		buf := make([]byte, 1<<20)
		os.Stderr.Write(buf[:runtime.Stack(buf, true)])
		panic(fmt.Sprintf("no end of seed %d:\n%v", seed, s))
	}).Stop()
	synctest.Test(t, func(*testing.T) { wrong = perform(s).judge() })
	return wrong
}
