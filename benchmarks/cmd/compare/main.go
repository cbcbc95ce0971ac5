// Compare runs all benchmarks and all loads in rounds, and prints the ratios of the library's figures to those of its
// peers, with their targets.
//
//	go run ./cmd/compare          # under 8 minutes
//	go run ./cmd/compare -quick   # under 1.5 minutes, and less reliable
//
// The library and its peers run in the same round, shortly after one another, and each round gives a ratio. So other
// load on the machine, which changes from round to round, has little effect on a ratio. The table has the median of the
// ratios.
//
// Compare prints the name of a file with the raw output, for benchstat.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"
)

const module = "github.com/tooldeadline/tooldeadline/benchmarks"

func main() {
	quick := flag.Bool("quick", false, "fewer and shorter repetitions")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := compare(ctx, plan(*quick)); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// A schedule sets the number and the duration of all measurements.
type schedule struct {
	rounds    int    // of the benchmarks
	benchtime string // of each
	loads     []load
}

// A load is a measurement of cmd/load, with the same arguments for each of several implementations.
type load struct {
	rounds int
	impls  []string
	args   []string
}

func plan(quick bool) schedule {
	watched := []string{"bare", "tooldeadline", "timer-reset", "polling"}
	memory := []string{"bare", "by-hand", "tooldeadline", "timer-reset", "polling"}
	args := func(s ...string) []string { return s }
	if quick {
		return schedule{2, "25ms", []load{
			{1, watched[:3], args("-measure=lateness", "-n=1")},
			{1, watched, args("-measure=lateness", "-n=10000", "-idle=2500ms")},
			{1, memory, args("-measure=memory", "-n=20000")},
			{1, watched[1:], args("-measure=mass", "-n=10000", "-idle=1s")},
			{1, watched, args("-measure=cpu", "-n=100000", "-idle=3s", "-beat=1s")},
		}}
	}
	return schedule{8, "200ms", []load{
		{3, watched[:3], args("-measure=lateness", "-n=1")},
		{3, watched, args("-measure=lateness", "-n=10000", "-idle=2500ms")},
		{3, watched, args("-measure=lateness", "-n=100000", "-idle=2500ms")},
		{3, memory, args("-measure=memory", "-n=20000")},
		{3, watched[1:], args("-measure=mass", "-n=10000", "-idle=1s")},
		{1, watched, args("-measure=cpu", "-n=100000")},
	}}
}

// compare runs s and prints the results.
func compare(ctx context.Context, s schedule) error {
	start := time.Now()
	raw, err := os.CreateTemp("", "tooldeadline-bench-*.txt")
	if err != nil {
		return err
	}
	defer raw.Close()
	fmt.Println("raw output:", raw.Name())
	if err := s.run(ctx, raw); err != nil {
		return err
	}
	if _, err := raw.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r, err := read(raw)
	if err != nil {
		return err
	}
	fmt.Printf("\n%s, %s/%s, %s, %d cores, %v\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		r.cpu, runtime.GOMAXPROCS(0), time.Since(start).Round(time.Second))
	r.printTargets(os.Stdout)
	r.printAll(os.Stdout)
	return nil
}

// run builds and runs the programs, which write to raw.
func (s schedule) run(ctx context.Context, raw io.Writer) error {
	dir, err := os.MkdirTemp("", "tooldeadline-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	call := func(out io.Writer, name string, args ...string) error {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Stdout, cmd.Stderr = out, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s %v: %w", filepath.Base(name), args, err)
		}
		return nil
	}
	bench, load := filepath.Join(dir, "bench.exe"), filepath.Join(dir, "load.exe")
	if err := call(os.Stderr, "go", "test", "-c", "-o", bench, module); err != nil {
		return err
	}
	if err := call(os.Stderr, "go", "build", "-o", load, module+"/cmd/load"); err != nil {
		return err
	}
	for i := range s.rounds {
		fmt.Fprintf(os.Stderr, "benchmarks, round %d of %d\n", i+1, s.rounds)
		if err := call(raw, bench, "-test.run=^$", "-test.bench=.", "-test.benchtime="+s.benchtime); err != nil {
			return err
		}
	}
	for _, l := range s.loads {
		for i := range l.rounds {
			fmt.Fprintf(os.Stderr, "load %v, round %d of %d\n", l.args, i+1, l.rounds)
			for _, impl := range l.impls {
				if err := call(raw, load, append([]string{"-impl=" + impl}, l.args...)...); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
