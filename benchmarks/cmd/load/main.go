// Load measures many concurrent executions in one process, which a benchmark function cannot do. It prints one line in
// the format of "go test -bench".
//
//	load -measure lateness|memory|cpu|mass -impl tooldeadline -n 10000
//
// Command compare runs it. Run it by hand to measure a single figure.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/tooldeadline/tooldeadline/benchmarks/internal/peer"
)

// bare names the implementation without limits, which gives the cost of the load itself.
const bare = "bare"

// byHand names the implementation without an idle limit.
const byHand = "by-hand"

// A scene describes one measurement.
type scene struct {
	impl       string
	run        peer.Run // nil for bare
	n          int
	idle, beat time.Duration
	limits     peer.Limits
}

// A metric is one measured value, with its unit in the form that benchstat reads.
type metric struct {
	value float64
	unit  string
}

var measures = map[string]func(scene) ([]metric, error){
	"lateness": lateness,
	"memory":   memory,
	"cpu":      processor,
	"mass":     mass,
}

func main() {
	measure := flag.String("measure", "", "what to measure: lateness, memory, cpu or mass")
	var s scene
	flag.StringVar(&s.impl, "impl", "tooldeadline", "implementation to measure")
	flag.IntVar(&s.n, "n", 10000, "number of concurrent executions")
	flag.DurationVar(&s.idle, "idle", 20*time.Second, "idle limit")
	flag.DurationVar(&s.beat, "beat", 5*time.Second, "interval of the beats")
	flag.Parse()

	s.limits = peer.Limits{Total: time.Hour, Idle: s.idle}
	s.run = peer.ByName[s.impl]
	if s.impl == byHand {
		s.run = peer.ByHand
	}
	f := measures[*measure]
	if f == nil || (s.run == nil && s.impl != bare) || s.n < 1 {
		fmt.Fprintln(os.Stderr, "load: unknown -measure or -impl")
		flag.Usage()
		os.Exit(2)
	}
	metrics, err := f(s)
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
	fmt.Printf("BenchmarkLoad/measure=%s/n=%d/impl=%s 1", *measure, s.n, s.impl)
	for _, m := range metrics {
		fmt.Printf(" %.6g %s", m.value, m.unit)
	}
	fmt.Println()
}

// start calls fn under the limits of s, on a new goroutine that stands for the caller, and then calls done. It does not
// wait. With bare, fn has no limits and its Beater is nil.
func (s scene) start(ctx context.Context, fn peer.Func, done func()) {
	go func() {
		defer done()
		if s.run == nil {
			ended := make(chan error, 1)
			go func() { ended <- fn(ctx, nil) }()
			<-ended
			return
		}
		_ = s.run(ctx, s.limits, fn)
	}()
}

// beating returns a function that beats after wait, and then at the interval every, until its context ends.
func beating(wait, every time.Duration) peer.Func {
	return func(ctx context.Context, b peer.Beater) error {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-timer.C:
				if b != nil {
					b.Beat()
				}
				timer.Reset(every)
			}
		}
	}
}
