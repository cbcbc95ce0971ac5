package harness

import (
	"flag"
	"iter"
	"testing"
	"time"
)

var (
	firstSeed = flag.Uint64("simulate.seed", 1, "the seed of the first random run of a simulation; 0 takes one from the clock")
	runs      = flag.Int("simulate.runs", 0, "how many random runs a simulation makes; 0 means as many as its test says")
	length    = flag.Duration("simulate.for", 0, "make random runs for that long, whatever their number")
)

// Seeds yields the seed of each random run of a simulation. There are runs of them, unless the command line says
// otherwise. If the test fails in a run, even by [testing.T.FailNow], Seeds logs the command that repeats the run, and
// yields no other seed.
func Seeds(t testing.TB, runs int) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		t.Helper()
		seed, runs := FirstSeed(), Runs(runs)
		begun, n, over := time.Now(), 0, false
		defer func() {
			if t.Failed() || !over { // synctest panics if goroutines are left
				t.Logf("again: go test -run='^%s$' -simulate.seed=%d -simulate.runs=1", t.Name(), seed)
				return
			}
			t.Logf("%d runs, the last with the seed %d, in %v", n, seed-1, time.Since(begun).Round(time.Millisecond))
		}()
		for ; Length() == 0 && n < runs || time.Since(begun) < Length(); n++ {
			if !yield(seed) || t.Failed() {
				break
			}
			seed++
		}
		over = true
	}
}

// FirstSeed returns the seed of -simulate.seed or, if that is 0, a seed from the clock, without its last digits.
func FirstSeed() uint64 {
	if *firstSeed == 0 {
		return uint64(time.Now().UnixNano()) >> 16
	}
	return *firstSeed
}

// Runs returns the number of runs of -simulate.runs, or n if that is 0.
func Runs(n int) int {
	if *runs > 0 {
		return *runs
	}
	return n
}

// Length returns the time of -simulate.for, or 0 if the number of runs decides.
func Length() time.Duration { return *length }
