//go:build !linux

package waits

import "os"

// An Input is a file that a command reads.
type Input struct{}

// InputOf reports false: on this system, the waits of a process cannot be read.
func InputOf(*os.File) (Input, bool) { return Input{}, false }

// Watch returns nil: this system has no Meter.
func Watch(any, Input) Meter { return nil }
