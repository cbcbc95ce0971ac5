//go:build !linux

package waits

import "os"

// An Input is a file that a command reads.
type Input struct{}

// InputOf returns false: this package cannot read what processes wait for on these systems.
func InputOf(*os.File) (Input, bool) { return Input{}, false }

// Watch returns nil: these systems have no Meter.
func Watch(any, Input) Meter { return nil }
