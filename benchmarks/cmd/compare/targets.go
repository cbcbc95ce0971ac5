package main

import (
	"fmt"
	"io"
)

// A target is a ratio, or an amount, that the library has to stay below.
type target struct {
	what string
	max  float64 // 0 means that the figure is for information

	unit    string
	library string
	peer    string // empty for an amount
	bare    string // subtracted from both, if not empty
}

const (
	beat    = "Beat/load="
	look    = "BeatContext/depth="
	run     = "Run/limits="
	both    = "RunParallel/limits="
	late    = "Load/measure=lateness/n="
	memory  = "Load/measure=memory/n=20000"
	cpu     = "Load/measure=cpu/n=100000"
	mass    = "Load/measure=mass/n=10000"
	library = "/impl=tooldeadline"
	hand    = "/impl=by-hand"
	reset   = "/impl=timer-reset"
	mutex   = "/impl=mutex"
	polling = "/impl=polling"
	async   = "/impl=failsafe-async"
	bare    = "/impl=bare"
	value   = "/impl=bare-value"
)

// targets holds all targets. They were set before the measured code was written.
var targets = []target{
	{"exact beat : Timer.Reset", 0.65, "sec/op", beat + "sparse" + library, beat + "sparse" + reset, ""},
	{"exact beat : polling", 0.5, "sec/op", beat + "sparse" + library, beat + "sparse" + polling, ""},
	{"exact beat : mutex", 0, "sec/op", beat + "sparse" + library, beat + "sparse" + mutex, ""},
	{"exact beat : reading the clock", 0, "sec/op", beat + "sparse" + library, beat + "sparse/impl=clock", ""},
	{"exact beat, allocations", 0, "allocs/op", beat + "sparse" + library, "", ""},
	{"beat in a burst : Timer.Reset", 0.06, "sec/op", beat + "hot" + library, beat + "hot" + reset, ""},
	{"beat in a burst, shared : Timer.Reset", 0, "sec/op", beat + "shared" + library, beat + "shared" + reset, ""},
	{"beat through a context, depth 0 : bare Value", 0, "sec/op", look + "0" + library, look + "0" + value, ""},
	{"beat through a context, depth 1 : bare Value", 1.5, "sec/op", look + "1" + library, look + "1" + value, ""},
	{"beat through a context, depth 3 : bare Value", 0, "sec/op", look + "3" + library, look + "3" + value, ""},
	{"beat through a context, depth 10 : bare Value", 1.2, "sec/op", look + "10" + library, look + "10" + value, ""},
	{"beat with a detail : Timer.Reset with one", 0, "sec/op", "BeatWith" + library, "BeatWith" + reset, ""},

	{"run, total : by hand", 0.9, "sec/op", run + "total" + library, run + "total" + hand, ""},
	{"run, total and idle : by hand (Timer.Reset)", 0.65, "sec/op", run + "idle" + library, run + "idle" + reset, ""},
	{"run, total and idle : polling", 0.5, "sec/op", run + "idle" + library, run + "idle" + polling, ""},
	{"run, total : failsafe-go async", 0.5, "sec/op", run + "total" + library, run + "total" + async, ""},
	{"run, total : failsafe-go sync (weaker)", 0, "sec/op", run + "total" + library, run + "total/impl=failsafe-sync", ""},
	{"run, caller has a deadline : by hand", 0, "sec/op", run + "deadline" + library, run + "deadline" + reset, ""},
	{"run, named : by hand with pprof.Do", 0, "sec/op", run + "named" + library, run + "named" + reset, ""},
	{"run on all cores, total : by hand", 0, "sec/op", both + "total" + library, both + "total" + hand, ""},
	{"run on all cores, total and idle : by hand", 0, "sec/op", both + "idle" + library, both + "idle" + reset, ""},
	{"run on all cores, total and idle : polling", 0, "sec/op", both + "idle" + library, both + "idle" + polling, ""},
	{"allocations per run", 7, "allocs/op", run + "idle" + library, "", ""},
	{"bytes allocated per run", 0, "B/op", run + "idle" + library, "", ""},

	{"memory beyond two goroutines : by hand, total only", 0.7, "B/run", memory + library, memory + hand, memory + bare},
	{"memory beyond two goroutines : by hand (Timer.Reset)", 0.5, "B/run", memory + library, memory + reset, memory + bare},
	{"memory beyond two goroutines : polling", 0, "B/run", memory + library, memory + polling, memory + bare},
	{"goroutines per run", 0, "goroutines/run", memory + library, "", ""},
	{"lateness p50, 1 : AfterFunc", 0, "p50-sec", late + "1" + library, late + "1" + bare, ""},
	{"lateness p99, 1 : AfterFunc", 0, "p99-sec", late + "1" + library, late + "1" + bare, ""},
	{"lateness p50, 10 000 : AfterFunc", 1.1, "p50-sec", late + "10000" + library, late + "10000" + bare, ""},
	{"lateness p99, 10 000 : AfterFunc", 1.1, "p99-sec", late + "10000" + library, late + "10000" + bare, ""},
	{"lateness p50, 100 000 : AfterFunc", 0, "p50-sec", late + "100000" + library, late + "100000" + bare, ""},
	{"lateness p99, 100 000 : AfterFunc", 0, "p99-sec", late + "100000" + library, late + "100000" + bare, ""},
	{"lateness p99, 100 000 : by hand (Timer.Reset)", 1, "p99-sec", late + "100000" + library, late + "100000" + reset, ""},
	{"lateness p99, 10 000 : polling", 0, "p99-sec", late + "10000" + library, late + "10000" + polling, ""},
	{"processor time at 100 000 : polling", 0.15, "cpu-%", cpu + library, cpu + polling, cpu + bare},
	{"processor time at 100 000 : by hand (Timer.Reset)", 1, "cpu-%", cpu + library, cpu + reset, cpu + bare},
	{"10 000 limits at once : by hand (Timer.Reset)", 1.1, "all-returned-sec", mass + library, mass + reset, ""},
	{"10 000 limits at once, stacks per run", 0, "stacks/run", mass + library, "", ""},
}

// measure returns the ratio or the amount of t in each round.
func (t target) measure(r *results) (all []float64) {
	us, peer, bare := r.values[figure{t.library, t.unit}], r.values[figure{t.peer, t.unit}], r.values[figure{t.bare, t.unit}]
	for i := range us {
		switch {
		case t.peer == "":
			all = append(all, us[i])
		case i >= len(peer) || (t.bare != "" && i >= len(bare)):
			return all
		case t.bare == "":
			all = append(all, us[i]/peer[i])
		default:
			all = append(all, (us[i]-bare[i])/(peer[i]-bare[i]))
		}
	}
	return all
}

// printTargets prints a table in Markdown.
func (r *results) printTargets(w io.Writer) {
	fmt.Fprintln(w, "| tooldeadline : peer | target | measured | rounds | met |")
	fmt.Fprintln(w, "|---|---|---|---|---|")
	for _, t := range targets {
		values := t.measure(r)
		if len(values) == 0 {
			fmt.Fprintf(w, "| %s | | not measured | | |\n", t.what)
			continue
		}
		median, low, high := summary(values)
		limit, met := "", ""
		if t.max > 0 {
			limit, met = fmt.Sprintf("≤ %.3g", t.max), "yes"
			if median > t.max {
				met = "**no**"
			}
		}
		fmt.Fprintf(w, "| %s | %s | %.3g | %.3g to %.3g | %s |\n", t.what, limit, median, low, high, met)
	}
}
