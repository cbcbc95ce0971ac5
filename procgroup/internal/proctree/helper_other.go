//go:build !linux

package proctree

// HelperMain does nothing: there is no such containment here.
func HelperMain() {}
