//go:build !linux

package procgroup

import "os"

// rusage returns no figures, because their units and meaning differ from system to system.
func rusage(*os.ProcessState) (peak, read, written int64, ok bool) { return 0, 0, 0, false }

func countsDisks() bool { return false }

func hostPeak() int64 { return 0 }
