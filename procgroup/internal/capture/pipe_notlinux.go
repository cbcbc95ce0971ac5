//go:build !linux

package capture

import (
	"math"
	"os"
)

// The capacity of a pipe cannot be changed on these systems.
const enlargeAt = math.MaxInt

func enlargePipe(*os.File) {}

// capacity returns 0: on these systems a pipe always holds less than pipeSize.
func capacity(uintptr) int { return 0 }
