// Mutate puts small faults into packages, one at a time, and reports which of them the tests notice:
//
//	go run ./internal/mutate -n 20 -seed 7 -tests ./timeout ./timeout ./internal/pulse
//
// It draws faults at random from the packages that are its arguments: replaced operators, negated conditions and
// booleans, missing statements, and numbers that are too large by one. For each fault it runs the tests of the packages
// of -tests, one package after the other until one fails, with "go test -overlay": no source file changes. With -save
// it writes the faults to a file and runs nothing. With -load it takes the faults of such a file, and finds each again
// by the line that it changes, so that two versions of the tests can be compared.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	n := flag.Int("n", 20, "how many faults to draw from each package")
	seed := flag.Uint64("seed", 0, "the seed of the draw; 0 takes a new one")
	tests := flag.String("tests", "", "the packages whose tests run, separated by spaces; defaults to the package of the fault")
	save := flag.String("save", "", "write the faults to this `file` and run nothing")
	load := flag.String("load", "", "take the faults of this `file`")
	limit := flag.Duration("timeout", 5*time.Minute, "how long the tests of one package may take")
	flag.Parse()
	if err := run(*n, *seed, strings.Fields(*tests), *save, *load, *limit, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(n int, seed uint64, tests []string, save, load string, limit time.Duration, packages []string) error {
	var faults []fault
	if load != "" {
		text, err := os.ReadFile(load)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(text, &faults); err != nil {
			return err
		}
		faults = slices.DeleteFunc(faults, func(f fault) bool {
			is := func(p string) bool { return filepath.Clean(p) == filepath.Clean(f.Package) }
			return len(packages) > 0 && !slices.ContainsFunc(packages, is)
		})
	} else {
		if seed == 0 {
			seed = rand.Uint64()
		}
		fmt.Fprintln(os.Stderr, "seed", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		for _, p := range packages {
			drawn, err := draw(p, n, random)
			if err != nil {
				return err
			}
			faults = append(faults, drawn...)
		}
	}
	if save != "" {
		text, err := json.MarshalIndent(faults, "", "\t")
		if err != nil {
			return err
		}
		return os.WriteFile(save, text, 0o600)
	}
	killed := 0
	for i, one := range faults {
		in := tests
		if len(in) == 0 {
			in = []string{one.Package}
		}
		began := time.Now()
		by, err := one.try(in, limit)
		if err != nil {
			return err
		}
		if by != survived && by != gone {
			killed++
		}
		fmt.Printf("%d %s: %s (%.1f s)\n", i+1, one, by, time.Since(began).Seconds())
	}
	fmt.Printf("%d of %d noticed\n", killed, len(faults))
	return nil
}
