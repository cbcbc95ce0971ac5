//go:build !linux

package capture

import (
	"math"
	"os"
)

// enlargeAt is never reached, because these systems do not let a program change the capacity of a pipe.
const enlargeAt = math.MaxInt

func enlargePipe(*os.File) {}

// capacity returns 0, which makes rest rely on pipe.holds: on these systems a pipe holds less than pipeSize.
func capacity(uintptr) int { return 0 }
