// Package waiting sets the parallelism of tests that mostly wait. Tests of several modules share it.
package waiting

import (
	"flag"
	"strconv"
)

// Parallel makes n parallel tests run at once, instead of one per processor, unless the command line
// sets -test.parallel. A TestMain calls it before the tests run. Tests that need a whole processor
// should then not be parallel, so that they run one by one.
func Parallel(n int) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set(strconv.Itoa(n)); err != nil {
			panic(err)
		}
	}
}
