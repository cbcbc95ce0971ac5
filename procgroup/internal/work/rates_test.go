package work_test

import (
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/work"
)

// SPEC 3.16, of a process: time in which it could have worked and got no processor is not
// counted against it. One that polls, and hardly works when it can, gains nothing by that.
func TestStarvedWork(t *testing.T) {
	rates := work.Rates{CPU: true, CPURate: 0.01, IO: true}
	for name, tt := range map[string]struct {
		used work.Usage
		want bool
	}{
		"works":                  {work.Usage{CPU: 10 * time.Millisecond}, true},
		"not enough":             {work.Usage{CPU: 10*time.Millisecond - 1}, false},
		"works when it can":      {work.Usage{CPU: 2 * time.Millisecond, Starved: 0.9}, true},
		"polls when it can":      {work.Usage{CPU: 500 * time.Microsecond, Starved: 0.9}, false},
		"writes when it can":     {work.Usage{IO: 7000, Starved: 0.9}, true},
		"writes little":          {work.Usage{IO: 6000, Starved: 0.9}, false},
		"can, and does nothing":  {work.Usage{}, false},
		"cannot, and did before": {work.Usage{Starved: 1}, false},
	} {
		if got := rates.Reached(tt.used, time.Second, false); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// SPEC 6.12: to start small programs is not work, unless that is all that a tree does. The figures are those of
// a second.
func TestStartingProgramsIsNotWork(t *testing.T) {
	const mkdirAndSleep = 77 + 99 // page faults
	start := func(n float64) work.Usage {
		return work.Usage{CPU: time.Duration(n * 2500 * float64(time.Microsecond)), IO: uint64(n * 16000), Faults: uint64(n * mkdirAndSleep)}
	}
	slowly := func(n float64) work.Usage { // in a virtual machine with slow page faults, beside other work
		used := start(n)
		used.CPU, used.FaultCost = time.Duration(n*13.1*float64(time.Millisecond)), 14*time.Microsecond
		return used
	}
	python := work.Usage{CPU: 50 * time.Millisecond, IO: 1353168, Faults: 1931}
	compiler := func(n uint64) work.Usage {
		return work.Usage{CPU: time.Duration(n) * 20 * time.Millisecond, IO: n * 180_000, Faults: n * 1768}
	}
	rates := work.Rates{CPU: true, CPURate: work.DefaultCPURate, IO: true}
	for name, tt := range map[string]struct {
		used   work.Usage
		steady bool
		want   bool
	}{
		"five times a second, with a sleep":     {start(5), false, false},
		"without one":                           {start(300), false, true},
		"without one, on a busy machine":        {start(5), true, true},
		"once in a while, and seen to run":      {start(1), true, false},
		"five times a second, slowly":           {slowly(5), false, false},
		"without a sleep, slowly":               {slowly(16), false, true},
		"and beside other work":                 {slowly(10), false, false},
		"python every second":                   {python, false, false},
		"one compiler after the other":          {compiler(40), false, true},
		"few compilers, as the machine is busy": {compiler(2), true, true},
		"a subshell that computes":              {work.Usage{CPU: 20 * time.Millisecond, Faults: 100}, false, true},
		"copies, and starts programs":           {work.Usage{IO: 300 << 10, Faults: 200}, false, true},
	} {
		if got := rates.Reached(tt.used, time.Second, tt.steady); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
