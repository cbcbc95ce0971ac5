//go:build !linux

package capture

import (
	"math"
	"os"
)

// The size of a pipe cannot be changed here.
const enlargeAt = math.MaxInt

func enlargePipe(*os.File) {}

// capacity is less than pipeSize on all of these systems.
func capacity(uintptr) int { return 0 }
