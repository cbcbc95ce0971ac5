package timeout_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

// Guarantees 1 to 9 and 11 to 13, and the rules of SPEC 3 and 4 about time and order: random executions, each judged by rules.
func TestSimulation(t *testing.T) {
	for seed := range harness.Seeds(t, 3000) {
		s := generate(seed)
		wrong := judge(t, seed, s)
		if len(wrong) == 0 {
			continue
		}
		first := strings.Join(wrong, "\n")
		for tries := 0; tries < 1000; {
			smaller := false
			for _, c := range s.simpler() {
				tries++
				if w := judge(t, seed, c); len(w) > 0 {
					s, wrong, smaller = c, w, true
					break
				}
			}
			if !smaller {
				break
			}
		}
		t.Fatalf("%s\nshrunk to\n%vwhich says\n%s\nWhere it depends on the scheduler, take -count, too.", first, s, strings.Join(wrong, "\n"))
	}
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
