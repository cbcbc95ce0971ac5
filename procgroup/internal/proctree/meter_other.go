//go:build !linux && !windows

package proctree

import "runtime"

// CanMeter returns why the work of a tree cannot be told here, if it cannot.
func CanMeter(bool) error {
	return unsupported("on " + runtime.GOOS + " there is no way to tell how much a tree of processes works")
}

// noMeter is for systems where CanMeter refuses.
type noMeter struct{}

func (noMeter) Meter(bool) Meter { return func() (Usage, bool) { return Usage{}, false } }
