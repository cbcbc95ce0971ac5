package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
	"golang.org/x/perf/benchunit"
)

// A figure identifies the values of a benchmark that have the same unit.
type figure struct{ name, unit string }

// results has the values of each figure, one per round.
type results struct {
	cpu    string
	order  []figure
	values map[figure][]float64
}

func read(raw io.Reader) (*results, error) {
	r := &results{values: make(map[figure][]float64)}
	for in := benchfmt.NewReader(raw, "raw output"); ; {
		if !in.Scan() {
			return r, in.Err()
		}
		switch rec := in.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, rec
		case *benchfmt.Result:
			if cpu := rec.GetConfig("cpu"); cpu != "" {
				r.cpu = cpu
			}
			base, parts := rec.Name.Parts()
			name := string(base)
			for _, p := range parts {
				if p[0] == '/' { // otherwise it is the number of processors
					name += string(p)
				}
			}
			for _, v := range rec.Values {
				f := figure{name, v.Unit}
				if _, ok := r.values[f]; !ok {
					r.order = append(r.order, f)
				}
				r.values[f] = append(r.values[f], v.Value)
			}
		}
	}
}

// summary returns the median of values, the lowest and the highest.
func summary(values []float64) (median, low, high float64) {
	s := benchmath.NewSample(values, &benchmath.DefaultThresholds)
	return benchmath.AssumeNothing.Summary(s, 0.95).Center, s.Values[0], s.Values[len(s.Values)-1]
}

// printAll prints the median of every measured figure that is not 0.
func (r *results) printAll(w io.Writer) {
	fmt.Fprintln(w, "\nAll medians:")
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, f := range r.order {
		median, low, high := summary(r.values[f])
		if high == 0 {
			continue // no allocations
		}
		scale := benchunit.CommonScale([]float64{median, low, high}, benchunit.ClassOf(f.unit))
		fmt.Fprintf(tw, "%s\t%s\t(%s to %s)\t %s\n", f.name, scale.Format(median), scale.Format(low), scale.Format(high), f.unit)
	}
	tw.Flush()
}
