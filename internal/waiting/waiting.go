// Package waiting is for tests that wait more than they work. Tests of all modules share it.
package waiting

import (
	"flag"
	"strconv"
)

// Parallel has n parallel tests run at once, instead of one per processor, unless the command line
// says how many. A TestMain calls it before the tests run. Tests that need a processor should not be
// parallel then: they run before the others, one by one.
func Parallel(n int) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set(strconv.Itoa(n)); err != nil {
			panic(err)
		}
	}
}
